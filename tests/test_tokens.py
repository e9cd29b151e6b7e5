import base64
import gzip
import hashlib
import threading
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from sage import tokens
from sage.deadline import Deadline, no_deadline
from sage.documents import parse_document
from sage.errors import SageError
from sage.tokens import ESTIMATE, TokenCounter


def vocabulary() -> bytes:
    packed = resources.files("sage").joinpath("data", "cl100k_base.tiktoken.gz").read_bytes()
    return gzip.decompress(packed)


@pytest.fixture(scope="module")
def reference() -> tiktoken.Encoding:
    """tiktoken's own encoding, built from its published pattern and the packaged vocabulary."""
    rows = (line.split() for line in vocabulary().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    return tiktoken.Encoding(
        "reference",
        pat_str=published("cl100k_base")["pat_str"],
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 100257},
    )


def published(name: str) -> dict[str, Any]:
    """What tiktoken publishes of an encoding, without the download of its vocabulary."""
    seen: dict[str, Any] = {}

    def note(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        seen.update(url=url, hash=expected_hash)
        return {}

    original = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = note
    try:
        return {**openai_public.ENCODING_CONSTRUCTORS[name](), **seen}
    finally:
        openai_public.load_tiktoken_bpe = original


@given(text=st.text(max_size=300))
@example(text="<|endoftext|> and <|im_start|>")
@example(text="  leading\n\n\n trailing   \t\r\n")
@example(text="don't WE'LL I'm 12345678 ½ ǅ")
@example(text="設計文書 🚀👩‍💻 é e\u0301 \u200b\u3000")
@example(text="\ud800 lone \udfff")
def test_count_is_exactly_tiktokens(
    text: str, counter: TokenCounter, reference: tiktoken.Encoding
) -> None:
    assert counter.count(text) == len(reference.encode(text, disallowed_special=()))


@pytest.mark.parametrize("name", sorted(tokens._VOCABULARIES))
def test_patterns_and_hashes_are_those_tiktoken_publishes(name: str) -> None:
    ours, theirs = tokens._VOCABULARIES[name], published(name)
    assert tokens._PATTERNS[name] == theirs["pat_str"]
    assert ours[0] == theirs["hash"]
    assert ours[1] == hashlib.sha1(theirs["url"].encode()).hexdigest()


@pytest.mark.parametrize("character", ["a", " ", "\n"])
def test_megabyte_of_one_character_is_counted(character: str, counter: TokenCounter) -> None:
    assert 0 < counter.count(character * 1_000_000) <= 3_000_000


def test_many_lone_surrogates_are_counted(counter: TokenCounter) -> None:
    assert counter.count("\ud800" * 100_000) >= 1


@pytest.mark.parametrize("blank", [" ", "\t", " \t", "\u3000"])
def test_run_of_blanks_that_makes_tiktoken_panic_is_counted(
    blank: str, counter: TokenCounter
) -> None:
    assert counter.count("word" + blank * (1_200_000 // len(blank)) + "word") > 1_000


def test_run_of_blanks_is_exact_up_to_half_a_million_and_close_beyond(
    counter: TokenCounter, reference: tiktoken.Encoding
) -> None:
    for blanks, error in ((499_999, 0), (600_000, 10)):
        text = "word" + " " * blanks + "word"
        exact = len(reference.encode_ordinary(text))
        assert exact <= counter.count(text) <= exact + error


def test_long_text_without_such_runs_is_counted_exactly(
    counter: TokenCounter, reference: tiktoken.Encoding
) -> None:
    text = "Every word of a long text. " * 8_000
    assert counter.count(text) == len(reference.encode_ordinary(text))


def test_nothing_is_loaded_before_something_is_counted() -> None:
    counter = TokenCounter(environment={})
    assert [counter.encoding, counter.encoding] == ["cl100k_base"] * 2
    before = counter.loaded
    counter.count("x")
    assert (before, counter.loaded) == (False, True)
    assert counter.encoding == "cl100k_base"


def test_encoding_without_a_vocabulary_is_estimated_and_says_so(tmp_path: Path) -> None:
    counter = TokenCounter("o200k_base", {"TIKTOKEN_CACHE_DIR": str(tmp_path)})
    assert counter.encoding == ESTIMATE
    assert counter.count("é漢\ud800") == 2 + 3 + 3
    assert counter.encoding == ESTIMATE


@given(text=st.text(max_size=200))
def test_estimate_never_undercounts(text: str, reference: tiktoken.Encoding) -> None:
    estimate = TokenCounter("o200k_base", {"TIKTOKEN_CACHE_DIR": "/nonexistent"}).count(text)
    assert estimate >= len(reference.encode_ordinary(text))


def test_vocabulary_in_the_cache_directory_is_used_when_its_hash_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_bundled", lambda: None)
    (tmp_path / tokens._VOCABULARIES["cl100k_base"][1]).write_bytes(vocabulary())
    counter = TokenCounter(environment={"TIKTOKEN_CACHE_DIR": str(tmp_path)})
    assert counter.count("hello world") == 2
    assert counter.encoding == "cl100k_base"


@pytest.mark.parametrize("data", [b"", b"IQ== 0\n", b"not a vocabulary"])
def test_vocabulary_with_another_hash_is_never_given_to_tiktoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr(tokens, "_bundled", lambda: data)
    (tmp_path / tokens._VOCABULARIES["cl100k_base"][1]).write_bytes(data)
    counter = TokenCounter(environment={"DATA_GYM_CACHE_DIR": str(tmp_path)})
    assert counter.count("hello world") == len("hello world")
    assert counter.encoding == ESTIMATE


@pytest.mark.parametrize("packed", [None, b"", b"no gzip", gzip.compress(b"x" * 999, mtime=0)[:-9]])
def test_damaged_package_data_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bytes | None
) -> None:
    (tmp_path / "data").mkdir()
    if packed is not None:
        (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(packed)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    empty = {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    assert TokenCounter(environment=empty).encoding == ESTIMATE


def test_slice_is_counted_once_per_document(counter: TokenCounter) -> None:
    document = parse_document("# Title\n\nSome words.\n", ".knowledge/core/a.md", "core")
    count = counter.count_slice(document, 0, 7)
    assert document.counts == {(0, 7): count}
    document.counts[0, 7] = 99
    assert counter.count_slice(document, 0, 7) == 99


def test_vocabulary_is_loaded_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    load = tokens._load

    def note(name: str, environment: Mapping[str, str]) -> tiktoken.Encoding | None:
        loads.append(name)
        return load(name, environment)

    monkeypatch.setattr(tokens, "_load", note)
    counter = TokenCounter(environment={})
    threads = [threading.Thread(target=counter.count, args=("x",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == ["cl100k_base"]


def test_counter_is_ready_by_a_far_deadline_and_without_one() -> None:
    counter = TokenCounter(environment={})
    assert counter.ready_by(Deadline(60_000))
    assert counter.loaded
    assert counter.ready_by(no_deadline())


def test_counter_is_not_ready_by_a_deadline_that_passes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_load = threading.Event()
    load = tokens._load
    monkeypatch.setattr(tokens, "_load", lambda *given: (may_load.wait(60), load(*given))[1])
    counter = TokenCounter(environment={})
    assert not counter.ready_by(Deadline(0))
    may_load.set()
    assert counter.ready_by(Deadline(60_000))


def test_blanks_in_two_runs_are_counted_at_once(counter: TokenCounter) -> None:
    assert counter.count(" " * 499_999 + "a" + " " * 450_000 + "b") > 1_000


def test_a_vocabulary_that_cannot_be_read_now_is_read_by_the_next_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = TokenCounter(environment={})

    def fail(*_: object) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(tokens, "_bundled", fail)
        assert counter.encoding == "cl100k_base"
        assert not counter.ready_by(Deadline(60_000))
        with pytest.raises(SageError, match="cannot be read now: Too many open files; ask again"):
            counter.count("words")
    assert counter.count("two words") == 2


def test_without_a_thread_to_be_had_the_vocabulary_is_loaded_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert TokenCounter(environment={}).ready_by(Deadline(60_000))
