"""The context for a task: what comes in, in which order, within which budget, and why."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.context import selection
from sage.context.builder import ContextBuilder, ContextRequest
from sage.context.selection import languages_of_request
from sage.deadline import Deadline, no_deadline
from sage.documents.document import Document
from sage.documents.markdown import parse_blocks
from sage.errors import InvalidInput, TimeoutExceeded
from sage.search.engine import RankedSections
from tests.conftest import Base
from tests.contexts import (
    COUNTER,
    LAYERS,
    RECIPES,
    answer_tokens,
    build,
    document,
    documents,
    finding,
    nothing,
    page_base,
    prose,
    topics,
)

FENCES = ("```", "````", "~~~")
VOCABULARY = "alpha beta gamma delta retry index lock 队列 日志 naïve 🚀 a.b x_y"

words = st.lists(
    st.sampled_from(
        [
            *[
                "alpha",
                "beta",
                "gamma",
                "delta",
                "retry",
                "index",
                "lock",
                "队列",
                "日志",
                "naïve",
                "🚀",
            ],
            "a.b",
            "x_y",
        ]
    ),
    min_size=1,
    max_size=40,
).map(" ".join)
fenced = st.builds(
    lambda fence, text, is_open: (
        f"{fence}python\n# not a heading\n{text}\n" + ("" if is_open else fence)
    ),
    st.sampled_from(FENCES),
    words,
    st.integers(0, 9).map(lambda n: n == 0),
)
block = st.one_of(
    words,
    st.lists(words, min_size=1, max_size=6).map(lambda rows: "\n".join(f"- {row}" for row in rows)),
    st.lists(words, min_size=1, max_size=6).map(
        lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | 1 |" for row in rows)
    ),
    fenced,
    st.sampled_from(
        ["---", "<!-- open", "> quoted", "    indented code", "Setext\n------", "\x0bodd\x07"]
    ),
)
section = st.builds(
    lambda level, heading, blocks: f"{'#' * level} {heading}\n\n" + "\n\n".join(blocks),
    st.integers(1, 4),
    st.sampled_from(
        ["Rules", "Checklist", "Pitfalls", "Errors in Go", "Related", "Overview", "词汇"]
    ),
    st.lists(block, max_size=5),
)
page = st.builds(
    lambda front, sections, ending: front + "\n\n".join(sections) + ending,
    st.sampled_from(["", "", "---\nlanguages: [go]\n---\n", "---\nstatus: draft\n---\n"]),
    st.lists(section, min_size=1, max_size=6),
    st.sampled_from(["", "\n", "\r\n", "\n\n---\n\n*The team*\n"]),
)
bases = st.dictionaries(
    st.builds(
        lambda layer, name: f"{layer}/{name}.md",
        st.sampled_from(LAYERS),
        st.sampled_from(["python", "go", "errors", "a/index", "a/b", "testing"]),
    ),
    page,
    min_size=1,
    max_size=8,
)
budgets = st.one_of(st.integers(1, 300), st.integers(300, 5_000), st.integers(5_000, 50_000))
scores = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 5), st.floats(0.01, 1.0)), max_size=12
)


@given(
    bases,
    budgets,
    st.sampled_from(list(RECIPES)),
    st.sampled_from(["", "retry the lock", "x", '- "', "队列"]),
    scores,
)
def test_every_pack_is_exact_closed_and_repeatable(
    files: dict[str, str],
    budget: int,
    task_type: str,
    task: str,
    found: list[tuple[int, int, float]],
) -> None:
    paths = sorted(files)
    rank = finding(*((paths[n % len(paths)], place, score) for n, place, score in found))
    try:
        pack = build(files, task_type, budget=budget, task=task, rank=rank)
    except InvalidInput as error:
        least = int(str(error).rsplit(" ", 1)[-1])
        assert least > budget
        packed = build(files, task_type, budget=least, task=task, rank=rank)
        assert answer_tokens(packed) <= least
        return
    assert pack == build(files, task_type, budget=budget, task=task, rank=rank)
    assert pack.token_count == COUNTER.count(pack.context)
    assert answer_tokens(pack) <= budget or not pack.context
    headings = [one.text for one in parse_blocks(pack.context + "\n\n# end") if one.level == 1]
    assert headings[-1] == "end"
    for source in pack.sources:
        assert any(heading.endswith(f":{source['lines']})") for heading in headings)


def test_current_files_give_language_and_words() -> None:
    files = {
        "guidelines/python.md": f"# Python\n\n{prose(60, 1)}\n",
        "guidelines/typescript.md": f"# TypeScript\n\n{prose(60, 2)}\n",
    }
    asked: list[str] = []

    found = finding(("guidelines/python.md", 0, 0.9), ("guidelines/typescript.md", 0, 0.9))

    def rank(text: str, limit: int) -> RankedSections:
        asked.append(text)
        return found(text, limit)

    request = ContextRequest("coding", current_files=("web/parcel_list.tsx",))
    builder = ContextBuilder(RECIPES, COUNTER, LAYERS)
    pack = builder.build(page_base(documents(files), rank), request, no_deadline())
    assert topics(pack) == ["guidelines/typescript"]
    assert asked == ["parcel list web"]
    assert pack.note == "left out: guidelines/python (python)"


def test_a_page_comes_for_the_files_of_its_scope() -> None:
    files = {f"practices/p{n}.md": f"# P{n}\n\n{prose(60, n)}\n" for n in range(9)}
    files["practices/orders.md"] = f"---\napplies_to: [src/orders/**]\n---\n# O\n\n{prose(60)}\n"
    inside = build(files, current_files=("src/orders/models.py",))
    assert topics(inside) == ["practices/orders"]
    assert inside.sources[0]["why"] == "applies to src/orders/**"
    assert topics(build(files, current_files=("src/other/models.py",))) == []


@pytest.mark.parametrize(
    ("language", "task", "current_files", "languages"),
    [
        (None, "", (), ("python",)),
        (None, "", ("a.py",), ("python",)),
        (None, "", ("a.go",), ("go",)),
        ("python", "", ("a.go",), ("go", "python")),
        (None, "", ("a.sql",), ("python", "sql")),
        (None, "tune the PostgreSQL query", (), ("python", "sql")),
        (None, "port it to Go", (), ("python", "go")),
        (None, "the goroutines wait", (), ("python", "go")),
        (None, "then go to the console", (), ("python",)),
        ("any", "", ("a.go",), ()),
    ],
)
def test_the_wanted_languages(
    language: str | None, task: str, current_files: tuple[str, ...], languages: tuple[str, ...]
) -> None:
    request = ContextRequest("coding", language, 4000, task, current_files)
    assert languages_of_request(request) == languages


def test_a_superseding_page_comes_in_the_place_of_the_old_one() -> None:
    files = {f"practices/p{n}.md": f"# P{n}\n\n{prose(150, n)}\n" for n in range(20)}
    files["practices/old.md"] = (
        "---\nstatus: superseded\nsuperseded_by: practices/new\n---\n"
        f"# Old\n\nRerun failed tests. {prose(60, 50)}\n"
    )
    files["practices/new.md"] = f"# New\n\n{prose(60, 51)}\n"
    found = finding(("practices/old.md", 0, 0.9))
    pack = build(files, task="rerun failed tests", budget=500, rank=found)
    assert topics(pack)[0] == "practices/new"
    assert pack.sources[0]["why"] == "replaces .knowledge/practices/old.md"
    assert "practices/old" not in topics(pack)


def test_a_page_for_other_task_types_comes_only_when_the_search_insists() -> None:
    files = {
        "practices/plan.md": f"---\ntask_types: [planning]\n---\n# Slices\n\n{prose(60, 1)}\n",
        "practices/code.md": f"# Code\n\n{prose(60, 2)}\n",
    }
    assert topics(build(files)) == ["practices/code"]
    found = finding(("practices/plan.md", 0, 0.9))
    assert topics(build(files, task="slices", rank=found))[0] == "practices/plan"
    weak = finding(("practices/code.md", 0, 0.9), ("practices/plan.md", 0, 0.5))
    assert topics(build(files, task="slices", rank=weak)) == ["practices/code"]


def test_what_always_belongs_is_always_there() -> None:
    files = {f"guidelines/p{n}.md": f"# Code {n}\n\n{prose(150, n)}\n" for n in range(20)}
    files["practices/runbook.md"] = (
        f"# Runbook\n\n## Deploy\n\n{prose(250, 40)}\n\n## Roll back\n\n{prose(250, 41)}\n"
    )
    always = ("practices/runbook#roll-back", "practices/gone")
    recipes = {"coding": dataclasses.replace(RECIPES["coding"], always=always)}
    builder = ContextBuilder(recipes, COUNTER, LAYERS)
    base = page_base(documents(files), nothing)
    pack = builder.build(base, ContextRequest("coding"), no_deadline())
    assert pack.sources[0]["topic"] == "practices/runbook#roll-back"
    assert pack.sources[0]["why"].startswith("always for coding")


def test_an_unknown_task_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"use one of coding, .*; did you mean coding"):
        build({}, "codeing")
    assert build({}, " Coding ").context == ""


def test_a_deadline_stops_the_work() -> None:
    deadline = Deadline(0)
    with pytest.raises(TimeoutExceeded):
        ContextBuilder(RECIPES, COUNTER, LAYERS).build(
            page_base(documents(FILES), nothing), ContextRequest("coding"), deadline
        )


def test_a_builder_sees_an_edit_and_keeps_what_did_not_change() -> None:
    builder = ContextBuilder(RECIPES, COUNTER, LAYERS)

    def context(pages: tuple[Document, ...]) -> str:
        base = page_base(pages, nothing)
        return builder.build(base, ContextRequest("coding"), no_deadline()).context

    pages = documents(FILES)
    before = context(pages)
    edited = document("practices/a.md", f"# A\n\nEdited just now. {prose(60, 9)}\n")
    after = context((edited, pages[1]))
    assert "Edited just now." in after
    assert "Edited just now." not in before
    assert context(pages) == before


def test_the_next_call_of_a_knowledge_base_sees_an_edit(base: Base) -> None:
    knowledge = base.open(FILES)
    assert "Edited" not in knowledge.context("coding", task="the queue")["context"]
    base.write({"practices/a.md": f"# A\n\nEdited queue rule. {prose(60, 9)}\n"})
    answer = knowledge.context("coding", task="the queue")
    assert "Edited queue rule." in answer["context"]
    assert answer["token_count"] == COUNTER.count(answer["context"])


def test_a_few_pages_that_hold_the_words_of_a_task_are_about_it(base: Base) -> None:
    """Each word is rare and on a page of its own, beside pages about something else."""
    words = ("quokka", "axolotl", "narwhal", "ibex", "lemur", "tapir")
    knowledge = base.open({f"practices/{w}.md": f"# Page\n\nThe {w} stays here.\n" for w in words})
    answer = knowledge.context("coding", task="rinse the axolotl and wash the ibex")
    assert "note" not in answer
    assert {"axolotl", "ibex"} <= set(answer["context"].split())
    foreign = knowledge.context("coding", task="set up Terraform for a Kafka cluster")
    assert foreign["note"].startswith("nothing here is about this task")


def test_a_draft_alone_about_the_task_is_named_and_nothing_fills_its_place(base: Base) -> None:
    others = {
        f"practices/p{n}.md": f"# Page {n}\n\nClients read signing sheets of area {n} daily.\n"
        for n in range(8)
    }
    draft = "---\nstatus: draft\n---\n# Token rotation\n\nRotate signing tokens after 30 days.\n"
    knowledge = base.open({**others, "guidelines/tokens.md": draft})
    answer = knowledge.context("coding", task="rotate the signing tokens")
    assert answer["note"].startswith("nothing here is about this task")
    assert answer["note"].endswith("left out: guidelines/tokens (draft)")
    assert not answer["sources"]


FILES = {
    "practices/a.md": f"# A\n\n{prose(60, 1)}\n",
    "practices/b.md": f"# B\n\n{prose(60, 2)}\n",
}


def test_opened_pages_are_kept_up_to_a_number_of_bytes(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"{first}{second}ing" for first in ("walk", "sail", "row") for second in "abcdefgh"]
    pages = {f"core/{word}.md": f"# {word}\n\nWhen {word}, wear a hat.\n" for word in words}
    knowledge = base.open(pages)
    monkeypatch.setattr(selection, "KEPT_BYTES", 20_000)
    contexts = [knowledge.context("coding", task=f"{word} with a hat") for word in words]
    assert all(context["token_count"] for context in contexts)
    known = knowledge._contexts.get()._known
    assert 1 <= len(known.passages) <= 5
    assert all(path in known.passages for one in known.scored.values() for path in one.candidates)
