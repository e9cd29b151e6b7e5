import base64
import gzip
import hashlib
import json
import os
import tempfile
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from sage import token_counter as tokens
from sage.deadline import Deadline, no_deadline
from sage.documents.document import parse_document
from sage.errors import SageError
from sage.token_counter import (
    ESTIMATE,
    BundledVocabulary,
    LightCounter,
    RememberingCounter,
    TokenCounter,
)

VOCABULARY = BundledVocabulary()
COUNTER = TokenCounter()


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


def test_pattern_and_hash_are_those_tiktoken_publishes() -> None:
    theirs = published("cl100k_base")
    assert theirs["pat_str"] == tokens._PATTERN
    assert theirs["hash"] == tokens._SHA256


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
    counter = TokenCounter()
    assert [counter.encoding, counter.encoding] == ["cl100k_base"] * 2
    before = counter.loaded
    counter.count("x")
    assert (before, counter.loaded) == (False, True)
    assert counter.encoding == "cl100k_base"


def test_without_a_vocabulary_the_count_is_an_estimate_and_says_so() -> None:
    counter = TokenCounter(lambda: None)
    assert counter.encoding == ESTIMATE
    assert counter.count("é漢\ud800") == 2 + 3 + 3
    assert counter.encoding == ESTIMATE


@given(text=st.text(max_size=200))
def test_estimate_never_undercounts(text: str, reference: tiktoken.Encoding) -> None:
    assert TokenCounter(lambda: None).count(text) >= len(reference.encode_ordinary(text))


@pytest.mark.parametrize("data", [b"", b"IQ== 0\n", b"not a vocabulary"])
def test_vocabulary_with_another_hash_is_never_given_to_tiktoken(data: bytes) -> None:
    counter = TokenCounter(lambda: data)
    assert counter.count("hello world") == len("hello world")
    assert counter.encoding == ESTIMATE


def test_nothing_is_read_from_shared_temporary_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "TMPDIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = hashlib.sha1(published("cl100k_base")["url"].encode()).hexdigest()
    for folder in (tmp_path, tmp_path / "data-gym-cache"):
        folder.mkdir(exist_ok=True)
        os.mkfifo(folder / name)  # reading it would wait for ever
    assert TokenCounter(read=lambda: None).encoding == ESTIMATE


@pytest.mark.parametrize("packed", [None, b"", b"no gzip", gzip.compress(b"x" * 999, mtime=0)[:-9]])
def test_damaged_package_data_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bytes | None
) -> None:
    (tmp_path / "data").mkdir()
    if packed is not None:
        (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(packed)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    assert TokenCounter().encoding == ESTIMATE


def test_slice_is_counted_once_per_document(counter: TokenCounter) -> None:
    document = parse_document("# Title\n\nSome words.\n", ".knowledge/core/a.md", "core")
    count = counter.count_slice(document, 0, 7)
    assert document.counts == {(0, 7): count}
    document.counts[0, 7] = 99
    assert counter.count_slice(document, 0, 7) == 99


def test_vocabulary_is_loaded_once_by_many_threads() -> None:
    loads: list[bytes | None] = []

    def note() -> bytes | None:
        loads.append(vocabulary())
        return loads[-1]

    counter = TokenCounter(note)
    threads = [threading.Thread(target=counter.count, args=("x",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1


def test_counter_is_ready_by_a_far_deadline_and_without_one() -> None:
    counter = TokenCounter()
    assert counter.ready_by(Deadline(60_000))
    assert counter.loaded
    assert counter.ready_by(no_deadline())


def test_counter_is_not_ready_by_a_deadline_that_passes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_load = threading.Event()
    load = tokens._load
    monkeypatch.setattr(tokens, "_load", lambda *given: (may_load.wait(300), load(*given))[1])
    counter = TokenCounter()
    assert not counter.ready_by(Deadline(0))
    may_load.set()
    assert counter.ready_by(Deadline(60_000))


def test_blanks_in_two_runs_are_counted_at_once(counter: TokenCounter) -> None:
    assert counter.count(" " * 499_999 + "a" + " " * 450_000 + "b") > 1_000


def test_a_vocabulary_that_cannot_be_read_now_is_read_by_the_next_count() -> None:
    failing = [True]

    def read() -> bytes:
        if failing:
            raise OSError(24, "Too many open files")
        return vocabulary()

    counter = TokenCounter(read)
    assert counter.encoding == "cl100k_base"
    assert not counter.ready_by(Deadline(60_000))
    with pytest.raises(SageError, match="cannot be read now: Too many open files; ask again"):
        counter.count("words")
    failing.clear()
    assert counter.count("two words") == 2


def test_without_a_thread_to_be_had_the_vocabulary_is_loaded_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert TokenCounter().ready_by(Deadline(60_000))


@pytest.mark.parametrize(
    "text",
    [
        "How do I retry a failed request?\n\n## Retries\n\n- once\n- twice\n",
        "def f(x):\n    return {'a': [1, 22, 4444]}  # don't\r\n",
        "数据库迁移要先备份。 ½ cup, x² and Ⅷ",
        "   \n\n \t trailing   ",
        "anticonstitutionnellement_SNAKE_caseHTTPServer" * 5,
    ],
)
def test_it_counts_what_tiktoken_counts(text: str) -> None:
    assert VOCABULARY.count(text) == COUNTER.count(text)
    as_json = json.dumps({"snippet": text}, ensure_ascii=False)
    assert VOCABULARY.count(as_json) == COUNTER.count(as_json)


@given(st.text(st.characters(codec="utf-8", max_codepoint=0x2FFF), max_size=80))
def test_it_counts_any_text_of_a_page_exactly(text: str) -> None:
    assert VOCABULARY.count(text) >= COUNTER.count(text)


def test_a_piece_that_is_no_word_of_anybodys_is_counted_by_its_bytes() -> None:
    assert VOCABULARY.count("x" * 5_000) == 5_000


def test_it_holds_words_and_not_their_ends() -> None:
    assert VOCABULARY.place("convention") is not None
    assert VOCABULARY.place("kubernetes") is not None
    assert VOCABULARY.place("databse") is None
    assert VOCABULARY.place("ilerplate") is None


@given(st.text(max_size=80))
@example("a  \x1c")
def test_what_the_vocabulary_is_sure_of_is_what_tiktoken_counts(text: str) -> None:
    assert VOCABULARY.exact(text) in (None, COUNTER.count(text))


@pytest.mark.parametrize("text", ["x" * 500, "\u19da", "\ud800", "a " * 60_000])
def test_it_is_not_sure_of_long_runs_rare_signs_and_long_texts(text: str) -> None:
    assert VOCABULARY.exact(text) is None
    assert LightCounter(TokenCounter(), VOCABULARY).count(text) == COUNTER.count(text)


def test_ordinary_text_is_counted_without_tiktoken() -> None:
    counter = TokenCounter()
    text = "Retry – with a delay → 3 × “jitter” 数据库迁移要先备份。 👍\n"
    assert LightCounter(counter, VOCABULARY).count(text) == COUNTER.count(text)
    assert not counter.loaded


@pytest.mark.parametrize(
    "line", ["words\n", "a 1\n\n  b", "7\r\n", "é!\n", "字\n", "x_\n", "d's\n\n"]
)
def test_a_text_counted_in_pieces_has_the_tokens_of_the_whole(
    line: str, counter: TokenCounter, reference: tiktoken.Encoding
) -> None:
    text = "".join(f"{line}{' ' * (number % 5)}" for number in range(120_000))
    assert counter.count(text) == len(reference.encode_ordinary(text))


@given(st.text(max_size=80) | st.text(" \n\tab1.,'-\x1c\u00a0\u6570", max_size=40))
def test_counts_of_parts_add_up_to_those_of_the_text(text: str) -> None:
    page = parse_document(text, "a.md", "core")
    counter = RememberingCounter(COUNTER)
    for end in (len(page.body), len(page.body.rstrip())):
        assert counter.count_slice(page, 0, end) == COUNTER.count(page.body[:end])
