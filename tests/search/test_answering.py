"""How much an answer shows, within its budget."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sage.errors import InvalidInput
from sage.knowledge import KnowledgeBase
from tests.conftest import Base

LONG = "\n\n".join(f"Paragraph {n} about retries and other things that fail." for n in range(200))
PAGES = {
    "practices/retries.md": "# Retries\n\nAbout them.\n\n## Backoff\n\nWait longer each *time*.\n",
    "practices/long.md": f"# Long\n\n## Everything on backoff\n\nBackoff waits.\n\n{LONG}\n",
    "practices/queues.md": "# Queues\n\nA queue waits <seconds> when the backoff is `full`.\n",
    "core/style.md": "# Style\n\nShort sentences.\n",
}


@pytest.fixture
def knowledge(base: Base) -> KnowledgeBase:
    base.write(PAGES)
    return base.open()


def tokens(knowledge: KnowledgeBase, answer: Mapping[str, Any]) -> int:
    return knowledge.counter.count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.parametrize("limit", [100, 137, 200, 333, 500, 1_000, 5_000])
def test_an_answer_is_never_longer_than_asked(knowledge: KnowledgeBase, limit: int) -> None:
    for query in ("backoff", "how long does a queue wait?", "retyr xqzvw backoff", "style"):
        assert tokens(knowledge, knowledge.search(query, max_tokens=limit)) <= limit


def test_the_best_section_comes_whole_as_it_is_written(knowledge: KnowledgeBase) -> None:
    best = next(
        one for one in knowledge.search("backoff")["results"] if one["path"].endswith("retries.md")
    )
    assert best["snippet"] == "## Backoff\n\nWait longer each *time*."
    assert best["whole"] is True


def test_a_section_that_does_not_fit_shows_its_best_sentences(knowledge: KnowledgeBase) -> None:
    long = next(
        one for one in knowledge.search("backoff")["results"] if one["path"].endswith("long.md")
    )
    assert "Backoff waits." in long["snippet"]
    assert "whole" not in long
    assert len(long["snippet"]) <= 300


def test_tokens_are_what_reading_the_topic_costs(knowledge: KnowledgeBase) -> None:
    for result in knowledge.search("backoff waits", limit=10)["results"]:
        read = knowledge.get("all", result["topic"], max_tokens=100_000)
        assert read["metadata"]["token_count"] == result["tokens"], result["topic"]


def test_a_question_about_something_else_gets_pointers_only(knowledge: KnowledgeBase) -> None:
    answer = knowledge.search("mortgage rates for penguins that wait")
    assert answer["found"] == "no"
    assert len(answer["results"]) <= 3
    assert not any("whole" in one for one in answer["results"])
    assert "penguins" in answer["missing"]


def test_what_is_as_always_is_not_said(knowledge: KnowledgeBase) -> None:
    answer = knowledge.search("backoff")
    assert set(answer) == {"results", "total", "query_time_ms", "found"}
    said = {"path", "title", "snippet", "score", "topic", "tokens", "lines"}
    assert all(set(one) <= said | {"whole"} for one in answer["results"])


def test_sentences_only_when_asked_so(knowledge: KnowledgeBase) -> None:
    answer = knowledge.search("backoff", whole=False)
    assert not any("whole" in one for one in answer["results"])


def test_a_page_that_was_replaced_stands_behind_its_successor(base: Base) -> None:
    base.write(
        {
            "practices/old.md": "---\nstatus: superseded\nsuperseded_by: ./new.md\n---\n"
            "# Flaky tests\n\nRun flaky tests with reruns, flaky tests again.\n",
            "practices/new.md": "# Unstable suites\n\nA flaky case is fixed or removed.\n",
            "core/other.md": "---\nstatus: draft\n---\n# Drafts\n\nA flaky idea.\n",
        }
    )
    results = base.open().search("flaky tests")["results"]
    paths = [one["path"].rsplit("/", 1)[-1] for one in results]
    assert paths.index("new.md") < paths.index("old.md")
    old = results[paths.index("old.md")]
    assert (old["status"], old["superseded_by"]) == ("superseded", "practices/new")
    assert results[paths.index("other.md")]["status"] == "draft"
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)


def test_an_old_date_is_shown_and_a_young_one_is_not(base: Base) -> None:
    base.write(
        {
            "core/a.md": "---\nlast_updated: '2001-02-03'\n---\n# Alpha\n\nzebra\n",
            "core/b.md": "---\nlast_updated: '2999-02-03'\n---\n# Beta\n\nzebra\n",
        }
    )
    results = base.open().search("zebra")["results"]
    assert [one.get("last_updated") for one in results] == ["2001-02-03", None]


def test_versions_of_one_page_take_one_place(base: Base) -> None:
    text = "# Install\n\nRun the zebra installer and follow what it says on every host.\n"
    base.write({f"practices/v{n}/install.md": f"{text}\nVersion {n}.\n" for n in (1, 2, 3)})
    answer = base.open().search("zebra installer")
    (only,) = answer["results"]
    assert only["copies"] == 2
    assert answer["total"] == 3


def test_a_heading_that_says_what_was_asked_is_the_section(base: Base) -> None:
    base.write(
        {
            "practices/git.md": "# Git\n\n## Hooks\n\nA hook checks the commit message: the commit "
            "message format, each commit, each message, its format.\n\n## Commit message format\n\n"
            "One line, then why.\n"
        }
    )
    best = base.open().search("commit message format")["results"][0]
    assert best["topic"] == "practices/git#commit-message-format"


def test_a_budget_out_of_range_is_refused(knowledge: KnowledgeBase) -> None:
    with pytest.raises(InvalidInput, match="max_tokens is 99; use a whole number from 100 to"):
        knowledge.search("backoff", max_tokens=99)


def test_a_whole_section_shows_no_marks_of_a_site_and_loses_no_words(base: Base) -> None:
    source = (
        "## Stop {#end}\n\n{{< note >}}\nSend a signal to <pod>.\n{{< /note >}}\n\n"
        "!!!info\n    Wait first.\n\n<!-- body -->\n\n```py\na = 1\n\n\nb = 2\n```\n"
    )
    base.write({"practices/pods.md": f"# Pods\n\nAbout pods.\n\n{source}"})
    found = base.open().search("stop signal")["results"][0]
    assert found["whole"] is True
    assert found["snippet"] == (
        "## Stop\n\nSend a signal to <pod>.\n\n    Wait first.\n\n```py\na = 1\n\n\nb = 2\n```"
    )


def test_what_is_far_behind_gives_its_place_to_the_best_section(base: Base) -> None:
    steps = "\n".join(f"{n}. Drain the turbine and note the pressure." for n in range(60))
    base.write({"practices/drain.md": f"# Drain a turbine\n\n{steps}\n"})
    base.write(
        {f"practices/{n}.md": f"# Report {n}\n\nPressure and much else.\n" for n in range(12)}
    )
    knowledge = base.open()
    answer = knowledge.search("drain a turbine pressure")
    assert answer["results"][0]["whole"] is True
    assert 4 <= len(answer["results"]) < 10
    assert len(knowledge.search("drain a turbine pressure", max_tokens=2_000)["results"]) == 10
