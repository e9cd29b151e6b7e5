"""The order of a pack: core first, then the best, then what fills the budget."""

import pytest

from sage.errors import InvalidInput
from tests.contexts import COUNTER, build, finding, prose, topics


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


@pytest.mark.parametrize("budget", [500, 1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("task", ["", "keep every order in the queue"])
def test_nine_tenths_of_a_budget_are_used(budget: int, task: str) -> None:
    found = finding(("practices/page3.md", 1, 0.9), ("frameworks/page2.md", 2, 0.7))
    for task_type in ("coding", "planning"):
        pack = build(RICH, task_type, budget=budget, task=task, rank=found)
        assert 0.9 * budget <= pack.token_count == COUNTER.count(pack.context) <= budget


def test_core_principles_come_first_then_what_the_task_asks_for() -> None:
    files = RICH | {"core/principles.md": f"# Principles\n\n## One\n\n{prose(60, 999)}\n"}
    found = finding(("practices/page7.md", 2, 0.9), ("guidelines/page5.md", 1, 0.4))
    packed = topics(build(files, task="write code", rank=found))
    layers = [topic.split("/")[0] for topic in packed]
    last_core = max(n for n, layer in enumerate(layers) if layer == "core")
    assert "core/principles" in packed
    assert last_core < layers.index("practices")
    assert packed[last_core + 1] == "practices/page7"


def test_the_core_keeps_to_its_share() -> None:
    pack = build(RICH, "debugging")
    core = sum(one["tokens"] for one in pack.sources if one["topic"].startswith("core/"))
    assert 0 < core <= 0.2 * 4000


def test_a_small_budget_still_holds_one_section() -> None:
    files = {"practices/a.md": "# A\n\nOne rule.\n"}
    with pytest.raises(InvalidInput) as refused:
        build(files, budget=5)
    least = int(str(refused.value).rsplit(" ", 1)[-1])
    assert build(files, budget=least).context == "# A (.knowledge/practices/a.md:1-3)\n\nOne rule."


def test_the_least_budget_may_be_a_cut() -> None:
    files = {"practices/a.md": "# A\n\nFirst.\n\n" + "\n\n".join(prose(40, n) for n in range(20))}
    with pytest.raises(InvalidInput, match="too small for any section") as refused:
        build(files, budget=20)
    least = int(str(refused.value).rsplit(" ", 1)[-1])
    pack = build(files, budget=least)
    assert pack.token_count == least < 80
    assert pack.context.startswith("# A (.knowledge/practices/a.md:1-3)\n\nFirst.\n\n[cut here;")


def test_an_empty_base_gives_an_empty_pack() -> None:
    pack = build({"core/index.md": "# Index\n\n- [a](a.md)\n"}, budget=1)
    assert (pack.context, pack.token_count, pack.sources, pack.complete) == ("", 0, [], True)


def test_everything_is_packed_when_it_fits() -> None:
    pack = build(rich(4), budget=50_000)
    assert pack.complete
    assert pack.omitted == []
    assert len(topics(pack)) == 4
