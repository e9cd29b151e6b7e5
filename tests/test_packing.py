"""The most worth that fits a budget."""

from sage.candidates import Candidate, Fit, Lineup, Stock
from sage.deadline import Deadline
from sage.packing import Packing, Style
from sage.parts import joined
from sage.passages import passages_of
from sage.tally import Tally
from tests.contexts import COUNTER, document, prose

EVEN = Style(same_document=1.0, over_share=0.0)


def packing(budget: int, style: Style = EVEN, **shares: float) -> Packing:
    return Packing(budget, Tally(COUNTER), shares or {"practices": 1.0}, style, Deadline())


def candidate(name: str, value: float, text: str, layer: str = "practices") -> Candidate:
    page = document(f"{layer}/{name}.md", f"# {name}\n\n{text}\n")
    return Candidate(passages_of(page)[0], Fit(value))


def lineup(*candidates: Candidate) -> Lineup:
    return Lineup(Stock(candidates))


def names(pack: Packing) -> list[str]:
    return [part.document.title for part in pack.parts({})]


def test_the_worthiest_come_first_and_no_limit_is_passed() -> None:
    pack = packing(300)
    offered = [candidate(f"p{n}", 2.0 - n / 10, prose(60, n)) for n in range(9)]
    pack.pack(lineup(*offered), 300)
    assert names(pack) == ["p0", "p1"]
    assert COUNTER.count(joined(pack.parts({}))) <= 300


def test_what_does_not_fit_gives_way_to_the_next_best() -> None:
    pack = packing(300)
    offered = [
        candidate("first", 3.0, prose(60, 1)),
        candidate("large", 2.0, prose(150, 2)),
        candidate("small", 1.0, prose(20, 3)),
    ]
    left = pack.pack(lineup(*offered), 300)
    assert names(pack) == ["first", "small"]
    assert [one.path for one in left] == [".knowledge/practices/large.md"]


def test_above_the_floor_a_poor_section_does_not_replace_a_good_one() -> None:
    pack = packing(300)
    offered = [
        candidate("first", 3.0, prose(60, 1)),
        candidate("large", 2.0, prose(150, 2)),
        candidate("small", 1.0, prose(20, 3)),
    ]
    pack.pack(lineup(*offered), 300, floor=0.8)
    assert names(pack) == ["first"]


def test_the_rest_is_filled_by_a_cut() -> None:
    pack = packing(300)
    text = "\n\n".join(prose(20, n) for n in range(7))
    left = pack.pack(
        lineup(candidate("first", 3.0, prose(60, 20)), candidate("long", 2.0, text)), 300
    )
    assert pack.fill(left)
    assert "[cut here; the rest: " in joined(pack.parts({}))
    assert 270 <= pack.used <= 301
    assert not pack.fill(left)


def test_a_section_too_large_for_the_budget_is_cut_so_that_others_come() -> None:
    pack = packing(2000)
    text = "\n\n".join(prose(40, n) for n in range(60))
    pack.pack(lineup(candidate("huge", 3.0, text), candidate("other", 1.0, prose(60, 99))), 2000)
    assert names(pack) == ["huge", "other"]
    assert 600 < COUNTER.count(pack.parts({})[0].text) <= 800


def test_text_that_is_packed_already_is_not_packed_again() -> None:
    pack = packing(3000)
    text = prose(80, 1)
    copies = [candidate("a", 2.0, text), candidate("b", 1.0, f"**{text.upper()}** And so on.")]
    pack.pack(lineup(*copies), 3000)
    assert names(pack) == ["a"]
    assert pack.is_repeated(copies[1])
    assert not pack.lacks(copies[1])


def test_one_document_does_not_take_all_when_breadth_counts() -> None:
    text = "# Long\n\n" + "\n\n".join(f"## S{n}\n\n{prose(110, n)}" for n in range(6))
    long = [Candidate(one, Fit(1.1)) for one in passages_of(document("practices/long.md", text))]
    offered = [*long, candidate("other", 1.0, prose(110, 9))]
    for same, expected in ((1.0, ["Long"]), (0.8, ["Long", "other"])):
        pack = packing(900, Style(same, 0.0))
        pack.pack(lineup(*offered), 900)
        assert sorted(set(names(pack))) == expected


def test_a_layer_past_its_share_gives_way() -> None:
    offered = [candidate(f"p{n}", 1.1, prose(60, n)) for n in range(8)]
    offered += [candidate(f"c{n}", 1.0, prose(60, 20 + n), "core") for n in range(8)]
    pack = packing(900, Style(1.0, 1.0), practices=0.5, core=0.5)
    pack.pack(lineup(*offered), 900)
    layers = [part.document.layer for part in pack.parts({})]
    assert 2 <= layers.count("core") <= 4


def test_neighbours_are_preferred_and_share_a_heading() -> None:
    text = "# Doc\n\n" + "\n\n".join(f"## S{n}\n\n{prose(110, n)}" for n in range(3))
    one, two, three = passages_of(document("practices/doc.md", text))
    offered = [Candidate(one, Fit(1.2)), Candidate(three, Fit(1.01)), Candidate(two, Fit(1.0))]
    pack = packing(800)
    pack.pack(lineup(*offered), 520)
    assert [part.lines for part in pack.parts({})] == [(3, 9)]


def test_what_came_last_can_be_dropped() -> None:
    pack = packing(900)
    pack.pack(lineup(candidate("a", 2.0, prose(60)), candidate("b", 1.0, prose(60, 1))), 900)
    pack.drop_last()
    assert names(pack) == ["a"]
    assert pack.used == Tally(COUNTER).part(pack.parts({})[0])
