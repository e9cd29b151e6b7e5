import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sage import __version__
from sage.answers import KnowledgeAnswer
from sage.deadline import Deadline
from sage.documents import containment, source_roots, walk
from sage.documents.files import SourceFile
from sage.documents.library import Loaded
from sage.errors import InvalidInput, NotFound, SageError, TimeoutExceeded
from sage.knowledge import KnowledgeBase
from sage.settings import load_settings
from sage.token_counter import LightCounter, TokenCounter
from tests.conftest import Base

OWN = Path(__file__).parent.parent
TEAM: dict[str, str | bytes] = {
    "core/principles.md": "# Principles\n\nSay why.\n",
    "core/deep/er/EXPERT_COMMITTEE.md": "# The committee\n",
    "guidelines/README.md": "# Guidelines\n",
    "guidelines/testing.md": (
        "---\ntitle: How we test\naliases: [quality gate]\n---\n# Tests\n\nIntro.\n\n"
        "## 1. Fixtures\n\nSmall ones.\n\n### Scope\n\nFunction.\n\n## Mocks\n\nNone.\n"
    ),
    "guidelines/api/testing.md": "# Testing an API\n\n## Fixtures\n\nReal calls.\n",
    "practices/EXPERT_COMMITTEE.md": "# Another committee\n",
    "practices/testing/flaky.md": "# Flaky tests\n",
    "practices/c#.md": "# C sharp\n\n## Style\n",
}


def paths(answer: KnowledgeAnswer) -> list[str]:
    lines = answer["content"].splitlines()
    marks = [line for line in lines if line.startswith("<!-- .knowledge/")]
    return [mark.removeprefix("<!-- .knowledge/").removesuffix(" -->") for mark in marks]


@pytest.fixture(scope="module")
def own(light_counter: LightCounter) -> KnowledgeBase:
    """The knowledge base of this repository."""
    return KnowledgeBase(load_settings({"root": OWN}, {}, OWN), counter=light_counter)


def test_layer_comes_whole_nested_folders_included(base: Base, counter: TokenCounter) -> None:
    answer = base.open(TEAM).get("core")
    assert answer["content"] == (
        "<!-- .knowledge/core/principles.md -->\n\n# Principles\n\nSay why.\n\n"
        "<!-- .knowledge/core/deep/er/EXPERT_COMMITTEE.md -->\n\n# The committee"
    )
    assert answer["metadata"] == {
        "layer": "core",
        "topic": None,
        "files_loaded": 2,
        "load_time_ms": 0.0,
        "from_cache": False,
        "token_count": counter.count(answer["content"]),
        "complete": True,
        "omitted": [],
    }


def test_all_layers_come_in_their_order_and_each_in_reading_order(base: Base) -> None:
    knowledge = base.open(TEAM, layers=["practices", "guidelines", "core"])
    assert paths(knowledge.get("all")) == [
        "practices/c#.md",
        "practices/EXPERT_COMMITTEE.md",
        "practices/testing/flaky.md",
        "guidelines/README.md",
        "guidelines/testing.md",
        "guidelines/api/testing.md",
        "core/principles.md",
        "core/deep/er/EXPERT_COMMITTEE.md",
    ]


def test_unknown_layer_is_refused_with_the_known_ones(base: Base) -> None:
    with pytest.raises(InvalidInput) as caught:
        base.open(TEAM).get("guideline")
    assert str(caught.value) == (
        "there is no layer 'guideline'; use one of core, guidelines, frameworks, practices, all"
        "; did you mean guidelines?"
    )


def test_layer_without_documents_is_an_empty_complete_answer(base: Base) -> None:
    answer = base.open(TEAM).get("frameworks")
    assert answer["content"] == ""
    assert answer["metadata"]["complete"]
    assert answer["metadata"]["files_loaded"] == 0


@pytest.mark.parametrize(
    ("layer", "topic", "found"),
    [
        ("all", "principles", ["core/principles.md"]),
        ("all", "PRINCIPLES.md", ["core/principles.md"]),
        ("core", "core/principles", ["core/principles.md"]),
        ("all", "api/Testing", ["guidelines/api/testing.md"]),
        ("all", "how we TEST", ["guidelines/testing.md"]),
        ("all", "quality_gate", ["guidelines/testing.md"]),
        ("all", "flaky tests", ["practices/testing/flaky.md"]),
        ("all", "testing/", ["practices/testing/flaky.md"]),
        ("core", "deep", ["core/deep/er/EXPERT_COMMITTEE.md"]),
        ("all", "c#", ["practices/c#.md"]),
        (
            "all",
            "expert-committee",
            ["core/deep/er/EXPERT_COMMITTEE.md", "practices/EXPERT_COMMITTEE.md"],
        ),
        ("guidelines", "testing", ["guidelines/testing.md", "guidelines/api/testing.md"]),
        ("guidelines", "guidelines/testing", ["guidelines/testing.md"]),
        ("all", "guidelines/testing#mocks", ["guidelines/testing.md:17-19"]),
        ("all", "How we test#MOCKS", ["guidelines/testing.md:17-19"]),
        ("all", "guidelines/testing#Fixtures", ["guidelines/testing.md:9-16"]),
        ("all", "guidelines/testing#1-fixtures", ["guidelines/testing.md:9-16"]),
        ("all", "api/testing.md#FIXTURES", ["guidelines/api/testing.md:3-5"]),
        ("all", "practices/c##style", ["practices/c#.md:3-3"]),
        (
            "all",
            "testing#fixtures",
            ["guidelines/testing.md:9-16", "guidelines/api/testing.md:3-5"],
        ),
    ],
)
def test_topic_is_found_however_it_is_called(
    base: Base, layer: str, topic: str, found: list[str]
) -> None:
    answer = base.open(TEAM).get(layer, topic)
    assert paths(answer) == found
    assert answer["metadata"]["topic"] == topic
    assert answer["metadata"]["complete"]


@pytest.mark.parametrize("topic", ["", "  ", None])
def test_blank_topic_means_the_layer(base: Base, topic: str | None) -> None:
    answer = base.open(TEAM).get("core", topic)
    assert len(paths(answer)) == 2
    assert answer["metadata"]["topic"] is None


def test_unknown_topic_names_the_nearest(base: Base) -> None:
    with pytest.raises(NotFound, match=r"'principels'.*nearest: core/principles"):
        base.open(TEAM).get("all", "principels")


def test_unknown_topic_near_to_nothing_names_the_search(base: Base) -> None:
    with pytest.raises(NotFound, match="sage_search"):
        base.open(TEAM).get("all", "xyzzyqqq")


def test_topic_of_another_layer_is_not_found(base: Base) -> None:
    with pytest.raises(NotFound):
        base.open(TEAM).get("core", "flaky")


def test_unknown_heading_names_the_headings_there_are(base: Base) -> None:
    with pytest.raises(NotFound, match=r"no heading 'mokcs'.*guidelines/testing#mocks"):
        base.open(TEAM).get("all", "guidelines/testing#mokcs")


@pytest.mark.parametrize("topic", ["../../etc/passwd", "/etc/passwd", "..", "a\0b", "~/x", "*"])
def test_topic_is_never_a_path_on_disk(base: Base, topic: str) -> None:
    with pytest.raises(NotFound):
        base.open(TEAM).get("all", topic)


def test_knowledge_folder_that_is_a_link_within_the_repository_is_served(base: Base) -> None:
    base.write(TEAM)
    (base.root / ".knowledge").rename(base.root / "docs")
    (base.root / ".knowledge").symlink_to("docs")
    assert paths(base.open().get("core", "principles")) == ["core/principles.md"]


def test_knowledge_folder_that_is_a_link_to_elsewhere_is_not_served(
    base: Base, tmp_path: Path
) -> None:
    base.write(TEAM)
    (base.root / ".knowledge").rename(tmp_path / "elsewhere")
    (base.root / ".knowledge").symlink_to(tmp_path / "elsewhere")
    knowledge = base.open()
    assert knowledge.get("all")["content"] == ""
    assert "leaves the repository" in knowledge.info()["problems"]["first"][0]["what"]


def test_overlong_topic_is_refused(base: Base) -> None:
    with pytest.raises(InvalidInput, match="topic has 10000 characters"):
        base.open(TEAM).get("all", "x" * 10_000)


@pytest.mark.parametrize("max_tokens", [0, -1, 1_000_001])
def test_limit_out_of_range_is_refused_with_the_range(base: Base, max_tokens: int) -> None:
    with pytest.raises(InvalidInput, match=f"max_tokens is {max_tokens}; .* from 1 to 1,000,000"):
        base.open(TEAM).get("core", max_tokens=max_tokens)


def test_call_named_by_a_cut_answer_fetches_the_next_part(base: Base) -> None:
    pages: dict[str, str | bytes] = {
        f"core/{n}.md": f"# Page {n}\n\n" + "word " * 90 for n in range(6)
    }
    knowledge = base.open(pages)
    answer = knowledge.get("core", max_tokens=300)
    assert not answer["metadata"]["complete"]
    shown = len(paths(answer))
    call = answer["content"].splitlines()[-1]
    assert f'sage_get_knowledge(topic="core/{shown}")' in call
    assert paths(knowledge.get("core", f"core/{shown}")) == [f"core/{shown}.md"]


def test_answer_is_the_callers_own(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": "word " * 90 for n in range(6)})
    first = knowledge.get("core", max_tokens=200)
    assert first["metadata"]["omitted"]
    first["metadata"]["omitted"][0]["title"] = "changed"
    first["metadata"]["omitted"].clear()
    assert knowledge.get("core", max_tokens=200)["metadata"]["omitted"][0]["title"] != "changed"


def test_answer_is_made_again_when_its_time_to_live_is_over(base: Base) -> None:
    knowledge = base.open(TEAM, cache__ttl_seconds=30)
    knowledge.get("core")
    base.clock.tick(29)
    assert knowledge.get("core")["metadata"]["from_cache"]
    base.clock.tick(30)
    assert not knowledge.get("core")["metadata"]["from_cache"]


def test_time_to_live_of_zero_never_answers_from_the_cache(base: Base) -> None:
    knowledge = base.open(TEAM, cache__ttl_seconds=0)
    for _ in range(2):
        assert not knowledge.get("core")["metadata"]["from_cache"]
    assert not knowledge.info()["cache"]["enabled"]


class SlowLoads:
    """Makes every load of a document take some time of the test's clock."""

    def __init__(self, base: Base, knowledge: KnowledgeBase, seconds: float) -> None:
        self._look_up = knowledge.library.look_up
        self._base = base
        self._seconds = seconds
        knowledge.library.look_up = self.look_up  # type: ignore[method-assign]

    def look_up(self, source: SourceFile, deadline: Deadline) -> Loaded:
        self._base.clock.tick(self._seconds)
        return self._look_up(source, deadline)


def test_deadline_in_the_middle_of_a_load_gives_what_was_loaded(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": f"# Page {n}\n" for n in range(6)})
    SlowLoads(base, knowledge, 0.1)
    answer = knowledge.get("core", deadline=Deadline(250, base.clock))
    metadata = answer["metadata"]
    assert paths(answer) == ["core/0.md", "core/1.md", "core/2.md"]
    assert not metadata["complete"]
    assert [omitted["topic"] for omitted in metadata["omitted"]] == ["core/3", "core/4", "core/5"]
    assert all(omitted["tokens"] is None for omitted in metadata["omitted"])
    assert 'topic="core/3"' in answer["content"].splitlines()[-1]
    assert metadata["load_time_ms"] == pytest.approx(300)


def test_deadline_before_the_first_load_is_a_timeout(base: Base) -> None:
    knowledge = base.open(TEAM)
    for topic in (None, "testing"):
        with pytest.raises(TimeoutExceeded, match="no answer within 0 ms"):
            knowledge.get("guidelines", topic, deadline=Deadline(0, base.clock))


def test_partial_answer_is_not_remembered(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": "x" for n in range(6)})
    SlowLoads(base, knowledge, 0.1)
    assert not knowledge.get("core", deadline=Deadline(250, base.clock))["metadata"]["complete"]
    whole = knowledge.get("core")["metadata"]
    assert whole["complete"]
    assert not whole["from_cache"]
    assert whole["files_loaded"] == 6


def test_topic_that_only_a_title_can_tell_loads_no_other_page(base: Base) -> None:
    knowledge = base.open(TEAM)
    SlowLoads(base, knowledge, 0.1)
    answer = knowledge.get("all", "quality gate", deadline=Deadline(250, base.clock))
    assert paths(answer) == ["guidelines/testing.md"]


@pytest.mark.parametrize("topic", [None, "testing", "guidelines/testing#mocks"])
def test_no_time_to_count_gives_an_empty_partial_answer(base: Base, topic: str | None) -> None:
    knowledge = base.open(TEAM)
    knowledge.counter = TokenCounter()
    answer = knowledge.get("guidelines", topic, deadline=Deadline(0, base.clock))
    assert answer["content"] == ""
    assert not answer["metadata"]["complete"]
    assert answer["metadata"]["omitted"]
    later = knowledge.get("guidelines", topic)
    assert later["metadata"]["complete"]
    assert later["content"]


def test_layer_that_was_not_listed_in_time_is_no_complete_answer(base: Base) -> None:
    knowledge = base.open({f"core/{number}.png": "" for number in range(600)})
    base.write({"core/a.md": "# Alpha\n"})
    late = knowledge.get("core", deadline=Deadline(0, base.clock))["metadata"]
    assert not late["complete"]
    assert not knowledge.get("core")["metadata"]["from_cache"]
    with pytest.raises(TimeoutExceeded):
        knowledge.get("core", "nowhere", deadline=Deadline(0, base.clock))
    with pytest.raises(NotFound):
        knowledge.get("core", "nowhere")


def test_layer_with_more_files_than_allowed_is_no_complete_answer(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": "x" for n in range(5)}, limits__max_files=3)
    answer = knowledge.get("core")["metadata"]
    assert (answer["files_loaded"], answer["complete"]) == (3, False)
    assert "limits.max_files" in knowledge.info()["problems"]["first"][0]["what"]
    with pytest.raises(NotFound):
        knowledge.get("core", "nowhere")


def test_document_that_another_caller_still_reads_is_left_out_in_time(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n", "core/b.md": "# Beta\n"})
    look_up = knowledge.library.look_up

    def busy_look_up(source: SourceFile, deadline: Deadline) -> Loaded:
        if source.path.endswith("b.md"):
            raise TimeoutExceeded(deadline.message)
        return look_up(source, deadline)

    knowledge.library.look_up = busy_look_up  # type: ignore[method-assign]
    answer = knowledge.get("core")
    assert paths(answer) == ["core/a.md"]
    assert not answer["metadata"]["complete"]
    with pytest.raises(TimeoutExceeded):
        knowledge.get("core", "b")  # an answer without anything would only say to ask again


def test_broken_files_are_left_out_and_the_rest_served(base: Base) -> None:
    knowledge = base.open(
        {
            "core/a.md": "# Fine\n",
            "core/b.md": b"\xff\x00 binary",
            "core/c.md": "---\ntitle: [\n---\n# Served\n",
            "core/d.md": "x" * 1_000_001,
            "core/.hidden.md": "x",
        }
    )
    answer = knowledge.get("core")
    assert paths(answer) == ["core/a.md", "core/c.md"]
    info = knowledge.info()
    assert info["problems"]["count"] == 3
    assert {problem["path"] for problem in info["problems"]["first"]} == {
        ".knowledge/core/b.md",
        ".knowledge/core/c.md",
        ".knowledge/core/d.md",
    }
    assert info["status"] == "degraded"
    assert "not served as written: .knowledge/core/" in info["reasons"][0]
    assert info["reasons"][0].endswith(" and 2 more")


def test_info_reads_no_page_that_the_index_knows(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {
        "core/a.md": "# A\n",
        "core/b.md": "---\nstatus: perhaps\n---\n# B\n",
    }
    told = base.open(pages).info()["problems"]
    base.open().warm()
    knowledge = base.open()
    knowledge.warm()
    monkeypatch.setattr(knowledge.library, "look_up", None)
    assert knowledge.info()["problems"] == told
    assert told["count"] == 1


def test_info_measures_the_knowledge_base(base: Base) -> None:
    knowledge = base.open({"core/a.md": "x" * 1_536, "practices/b.md": "y" * 512})
    base.clock.tick(12.5)
    for _ in range(3):
        knowledge.get("core")
    info = knowledge.info()
    assert info["version"] == __version__
    assert info["knowledge_base"]["content_files"] == 2
    assert info["knowledge_base"]["total_size_kb"] == 2.0
    files = {layer["name"]: layer["files"] for layer in info["knowledge_base"]["layers"]}
    assert files == {"core": 1, "guidelines": 0, "frameworks": 0, "practices": 1}
    assert info["uptime_seconds"] == 12.5
    assert info["encoding"] == "cl100k_base"
    assert info["cache"]["enabled"]
    assert info["cache"]["hit_rate"] > 0
    assert info["problems"] == {"count": 0, "first": []}


def test_info_does_not_wait_for_the_search_to_be_opened(base: Base) -> None:
    base.write({"core/a.md": "# A\n"})
    knowledge = base.open()
    info = knowledge.info(Deadline(60_000))
    assert (info["status"], info["index"]) == ("healthy", {"state": "opening"})
    assert info["knowledge_base"]["content_files"] == 1
    knowledge.search("a")
    assert knowledge.info(Deadline(60_000))["index"]["state"] == "ready"


def test_info_of_an_empty_base_says_what_to_do(base: Base) -> None:
    info = base.open().info()
    assert info["status"] != "healthy"
    assert "put markdown files under .knowledge" in " ".join(info["reasons"])


def test_documents_come_in_reading_order(base: Base) -> None:
    knowledge = base.open(TEAM)
    assert [document.topic for document in knowledge.documents("guidelines")] == [
        "guidelines/README",
        "guidelines/testing",
        "guidelines/api/testing",
    ]
    assert len(knowledge.documents()) == len(TEAM)


def test_documents_are_all_or_a_timeout(base: Base) -> None:
    with pytest.raises(TimeoutExceeded):
        base.open(TEAM).documents(deadline=Deadline(0, base.clock))


def test_twenty_threads_make_one_answer(base: Base) -> None:
    knowledge = base.open(TEAM)
    started = threading.Barrier(20)
    answers: list[KnowledgeAnswer] = []

    def ask() -> None:
        started.wait()
        answers.append(knowledge.get("all"))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer["content"] for answer in answers}) == 1
    assert [answer["metadata"]["from_cache"] for answer in answers].count(False) == 1


@given(limit=st.one_of(st.integers(1, 200), st.integers(1, 60_000)))
@settings(max_examples=40)
def test_no_answer_exceeds_its_limit(limit: int, own: KnowledgeBase, counter: TokenCounter) -> None:
    answer = own.get("all", max_tokens=limit)
    metadata = answer["metadata"]
    assert metadata["token_count"] == counter.count(answer["content"]) <= limit
    assert metadata["complete"] == (not metadata["omitted"])


def test_our_own_knowledge_is_served_without_a_problem(own: KnowledgeBase) -> None:
    assert own.info()["problems"] == {"count": 0, "first": []}
    assert len(own.documents()) >= 30
    for document in own.documents():
        answer = own.get("all", document.topic, max_tokens=1_000_000)
        assert paths(answer) == [document.path.removeprefix(".knowledge/")]


def failing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make one file fail to be read, as a worn disk does."""
    read = containment.read_file

    def fail(root: Path, path: str, most: int, within: str) -> object:
        if path.endswith(name):
            raise OSError(5, "Input/output error")
        return read(root, path, most, within)

    monkeypatch.setattr(source_roots, "read_file", fail)


def test_an_answer_without_a_file_that_failed_says_so_and_the_next_has_it(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n\nzebra\n", "core/b.md": "# Beta\n\nA zebra.\n"})
    with monkeypatch.context() as patched:
        failing("b.md", patched)
        answer = knowledge.get("core")
        assert "Alpha" in answer["content"]
        assert not answer["metadata"]["complete"]
        assert [one["topic"] for one in answer["metadata"]["omitted"]] == ["core/b"]
        assert not knowledge.get("core", "beta")["metadata"]["complete"]
        assert not knowledge.search("zebra")["complete"]
        assert not knowledge.context("coding")["complete"]
        assert knowledge.info()["status"] == "degraded"
    assert knowledge.get("core")["metadata"]["complete"]
    assert knowledge.search("zebra")["total"] == 2
    assert "complete" not in knowledge.search("zebra")
    assert "Beta" in knowledge.context("coding")["context"]


def test_a_topic_in_a_folder_that_fails_is_not_said_to_be_nothing(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n", "core/deep/b.md": "# Beta\n"})

    def fail(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(walk, "open_below", fail)
    with pytest.raises(SageError, match="not every folder can be listed now; ask again"):
        knowledge.get("core", "beta")
    assert not knowledge.get("core")["metadata"]["complete"]


def test_a_context_of_a_kept_index_parses_no_page(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open(TEAM)
    expected = knowledge.context("coding", task="fixtures of a test")["context"]
    knowledge.close()
    monkeypatch.delattr("sage.documents.library.parse_document")
    again = base.open().context("coding", task="fixtures of a test")
    assert again["context"] == expected != ""


def test_a_kept_index_that_is_damaged_anywhere_is_built_again_within_the_call(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a large file only what is read is checked: the damage shows in the middle of a call.
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    monkeypatch.setattr("sage.terms.index_file._BLOCK", 64)
    asked: dict[str, Callable[[KnowledgeBase], object]] = {
        "search": lambda one: one.search("rollback")["results"],
        "context": lambda one: one.context("debugging", task="rollback")["context"],
        "explain": lambda one: one.explain("rollback"),
        "topics": lambda one: one.topics_for("rollback", "all", 3),
    }
    first = base.open({"practices/release.md": "# Release\n\nA rollback takes a minute.\n"})
    right = {name: ask(first) for name, ask in asked.items()}
    first.close()
    (kept,) = Path(base.environment["SAGE_CACHE_DIR"]).rglob("*.sage")
    whole = kept.read_bytes()
    places = range(whole.index(b'"parts"') + 600, len(whole) - 600, 64)
    for name, ask in asked.items():
        rebuilt = 0
        for at in places:
            kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            again = base.open()
            assert ask(again) == right[name], (name, at)
            rebuilt += again.index().get("message", "").startswith("built again")
        assert rebuilt
