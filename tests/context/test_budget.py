"""The order of a context: what comes first, what fills the budget, and when it ends."""

import pytest

from sage.errors import InvalidInput
from tests.contexts import COUNTER, answer_tokens, build, finding, prose, topics


def rich(pages: int = 60) -> dict[str, str]:
    """A base with more text than any budget here: sections of every size, code, lists, tables."""
    layers = ("core", "guidelines", "frameworks", "practices")
    files = {}
    for n in range(pages):
        sections = [
            f"## Rule {n}\n\n{prose(30 + 9 * (n % 23), n)}",
            f"## Steps {n}\n\n" + "\n".join(f"- {prose(12, 100 * n + k)}" for k in range(8)),
            f"## Code {n}\n\n```python\n{prose(40, 7 * n + 3)}\n```\n\n{prose(50, 11 * n + 5)}",
        ]
        files[f"{layers[n % 4]}/page{n}.md"] = f"# Page {n}\n\n" + "\n\n".join(sections) + "\n"
    return files


RICH = rich()
FOUND = finding(("practices/page3.md", 1, 0.9), ("frameworks/page2.md", 2, 0.7))


@pytest.mark.parametrize("budget", [300, 500, 1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("task", ["", "keep every order in the queue"])
def test_the_whole_answer_is_within_the_budget(budget: int, task: str) -> None:
    for task_type in ("coding", "planning"):
        packed = build(RICH, task_type, budget=budget, task=task, rank=FOUND)
        assert packed.token_count == COUNTER.count(packed.context) > 0
        assert answer_tokens(packed) <= packed.answer_tokens + 2 <= budget + 2
        assert answer_tokens(packed) <= budget


@pytest.mark.parametrize("budget", [500, 1_000, 2_000, 4_000, 8_000])
def test_without_a_task_the_budget_is_used(budget: int) -> None:
    assert answer_tokens(build(RICH, budget=budget)) >= 0.85 * budget


def test_with_a_task_nothing_comes_that_does_not_serve_it() -> None:
    packed = build(RICH, budget=8_000, task="keep every order in the queue", rank=FOUND)
    served = [topic for topic in topics(packed) if not topic.startswith("core/")]
    assert served == ["practices/page3", "frameworks/page2"]
    assert answer_tokens(packed) < 4_000
    assert packed.omitted == []


def test_what_the_task_asks_for_comes_first_and_principles_keep_to_their_share() -> None:
    files = RICH | {"core/principles.md": f"# Principles\n\n## One\n\n{prose(20, 999)}\n"}
    packed = build(files, task="write orders", rank=FOUND)
    assert topics(packed)[0] == "practices/page3"
    core = [text for text in packed.context.split("\n# ") if "(.knowledge/core/" in text]
    assert COUNTER.count("".join(core)) <= 0.15 * packed.token_count


def test_without_a_task_the_core_comes_first_and_keeps_to_its_share() -> None:
    packed = build(RICH, "debugging")
    layers = [topic.split("/")[0] for topic in topics(packed)]
    assert layers[0] == "core"
    core = [text for text in packed.context.split("\n# ") if "(.knowledge/core/" in text]
    assert 0 < COUNTER.count("".join(core)) <= 0.3 * 4000


def test_when_nothing_is_about_the_task_it_says_so_and_gives_principles() -> None:
    files = RICH | {"core/principles.md": f"# Principles\n\n## One\n\n{prose(60, 999)}\n"}
    weak = finding(("practices/page3.md", 1, 0.1), is_about_it=False)
    packed = build(files, task="paint the fence", rank=weak)
    assert packed.note == "nothing here is about this task; only principles follow"
    assert {topic.split("/")[0] for topic in topics(packed)} == {"core"}
    assert answer_tokens(packed) <= 0.4 * 4000


def test_pages_that_may_not_come_are_named() -> None:
    files = RICH | {
        "practices/draft.md": f"---\nstatus: draft\n---\n# Draft\n\n{prose(30, 7)}\n",
        "practices/golang.md": f"---\nlanguages: [go]\n---\n# Go\n\n{prose(30, 8)}\n",
    }
    found = finding(("practices/draft.md", 0, 0.8), ("practices/golang.md", 0, 0.9))
    packed = build(files, task="keep orders", rank=found)
    assert packed.note == "left out: practices/golang (go), practices/draft (draft)"


def test_a_small_budget_still_holds_one_section() -> None:
    files = {"practices/a.md": "# A\n\nOne rule.\n"}
    with pytest.raises(InvalidInput) as refused:
        build(files, budget=5)
    least = int(str(refused.value).rsplit(" ", 1)[-1])
    packed = build(files, budget=least)
    assert packed.context == "# A (.knowledge/practices/a.md:1-3)\n\nOne rule."
    assert answer_tokens(packed) <= least


def test_the_least_budget_may_be_a_cut() -> None:
    files = {"practices/a.md": "# A\n\nFirst.\n\n" + "\n\n".join(prose(40, n) for n in range(20))}
    with pytest.raises(InvalidInput, match="too small for any section") as refused:
        build(files, budget=20)
    least = int(str(refused.value).rsplit(" ", 1)[-1])
    packed = build(files, budget=least)
    assert answer_tokens(packed) <= least < 160
    assert packed.context.startswith("# A (.knowledge/practices/a.md:1-3)\n\nFirst.\n\n[cut here;")


def test_an_empty_base_gives_an_empty_context() -> None:
    packed = build({"core/index.md": "# Index\n\n- [a](a.md)\n"}, budget=1)
    assert (packed.context, packed.token_count, packed.sources, packed.complete) == (
        "",
        0,
        [],
        True,
    )


def test_everything_is_packed_when_it_fits() -> None:
    packed = build(rich(4), budget=50_000)
    assert packed.complete
    assert packed.omitted == []
    assert len(topics(packed)) == 4
