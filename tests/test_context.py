"""The context for a task: what comes in, in which order, within which budget, and why."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.context import ContextBuilder, Request, languages_of_request
from sage.deadline import Deadline, no_deadline
from sage.documents import Document
from sage.errors import InvalidInput, TimeoutExceeded
from sage.markdown import parse_blocks
from tests.conftest import Base
from tests.contexts import (
    COUNTER,
    RECIPES,
    build,
    document,
    documents,
    finding,
    nothing,
    prose,
    topics,
)

FENCES = ("```", "````", "~~~")
VOCABULARY = "alpha beta gamma delta retry index lock 队列 日志 naïve 🚀 a.b x_y"
LAYERS = ("core", "guidelines", "frameworks", "practices")

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
        assert build(files, task_type, budget=least, task=task, rank=rank).token_count <= least
        with pytest.raises(InvalidInput):
            build(files, task_type, budget=least - 1, task=task, rank=rank)
        return
    assert pack == build(files, task_type, budget=budget, task=task, rank=rank)
    assert pack.token_count == COUNTER.count(pack.context) <= budget
    assert len(set(pack.sections)) == len(pack.sections)
    headings = [one.text for one in parse_blocks(pack.context + "\n\n# end") if one.level == 1]
    assert headings[-1] == "end"
    for source in pack.sources:
        place = f"({source['path']}:{source['lines'][0]}-{source['lines'][1]})"
        assert any(heading.endswith(place) for heading in headings)


def test_current_files_give_language_and_words() -> None:
    files = {
        "guidelines/python.md": f"# Python\n\n{prose(60, 1)}\n",
        "guidelines/typescript.md": f"# TypeScript\n\n{prose(60, 2)}\n",
        "guidelines/sql.md": f"# SQL guideline\n\n{prose(60, 3)}\n",
    }
    asked: list[str] = []

    def rank(text: str, _limit: int) -> list[tuple[str, int, float]]:
        asked.append(text)
        return []

    pack = build(files, current_files=("web/parcel_list.tsx", "db/schema.sql"), rank=rank)
    assert sorted(topics(pack)) == ["guidelines/sql", "guidelines/typescript"]
    assert asked == ["parcel list web schema"]


@pytest.mark.parametrize(
    ("language", "task", "current_files", "languages"),
    [
        ("python", "", (), ("python",)),
        ("python", "", ("a.py",), ("python",)),
        ("python", "", ("a.go",), ("go",)),
        ("rust", "", ("a.go",), ("go", "rust")),
        ("python", "", ("a.sql",), ("python", "sql")),
        ("python", "tune the PostgreSQL query", (), ("python", "sql")),
        ("python", "port it to Go", (), ("python",)),
        ("any", "", ("a.go",), ()),
    ],
)
def test_the_wanted_languages(
    language: str, task: str, current_files: tuple[str, ...], languages: tuple[str, ...]
) -> None:
    request = Request("coding", language, 4000, task, current_files)
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
    assert "replaces .knowledge/practices/old.md" in pack.sources[0]["why"]
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
    builder = ContextBuilder(recipes, COUNTER)
    pack = builder.build(documents(files), Request("coding"), nothing, no_deadline())
    assert pack.sources[0]["topic"] == "practices/runbook#roll-back"
    assert pack.sources[0]["why"].startswith("always for coding")


def test_an_unknown_task_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"use one of coding, .*; did you mean coding"):
        build({}, "codeing")
    assert build({}, " Coding ").context == ""


def test_a_deadline_stops_the_work() -> None:
    deadline = Deadline(0)
    with pytest.raises(TimeoutExceeded):
        ContextBuilder(RECIPES, COUNTER).build(
            documents(FILES), Request("coding"), nothing, deadline
        )


def test_a_builder_sees_an_edit_and_keeps_what_did_not_change() -> None:
    builder = ContextBuilder(RECIPES, COUNTER)

    def context(pages: tuple[Document, ...]) -> str:
        return builder.build(pages, Request("coding"), nothing, no_deadline()).context

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


FILES = {
    "practices/a.md": f"# A\n\n{prose(60, 1)}\n",
    "practices/b.md": f"# B\n\n{prose(60, 2)}\n",
}
