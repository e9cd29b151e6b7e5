"""The most worth that fits a budget."""

from sage.context.excerpts import TokenTally, joined
from sage.context.packing import Packing
from sage.context.passages import passages_of
from sage.context.scoring import Candidate, Fit
from sage.deadline import Deadline
from tests.contexts import COUNTER, document, prose


def packing(budget: int, same_document: float = 1.0, **shares: float) -> Packing:
    return Packing(budget, TokenTally(COUNTER), shares, same_document, Deadline())


def candidate(name: str, value: float, text: str, layer: str = "practices") -> Candidate:
    page = document(f"{layer}/{name}.md", f"# {name}\n\n{text}\n")
    return Candidate(passages_of(page)[0], Fit(value))


def names(pack: Packing) -> list[str]:
    return [held.document.title for held in pack.documents()]


def test_the_worthiest_come_first_and_no_limit_is_passed() -> None:
    pack = packing(400)
    offered = [candidate(f"p{n}", 2.0 - n / 10, prose(60, n)) for n in range(9)]
    pack.pack(offered, 400)
    assert names(pack) == ["p0", "p1"]
    assert COUNTER.count(joined(pack.documents())) <= 400


def test_what_does_not_fit_gives_way_to_the_next_best() -> None:
    pack = packing(300)
    offered = [
        candidate("first", 3.0, prose(60, 1)),
        candidate("large", 2.0, prose(150, 2)),
        candidate("small", 1.0, prose(20, 3)),
    ]
    left = pack.pack(offered, 300)
    assert names(pack) == ["first", "small"]
    assert [one.path for one in left] == [".knowledge/practices/large.md"]


def test_above_the_floor_a_poor_section_does_not_replace_a_good_one() -> None:
    pack = packing(300)
    offered = [
        candidate("first", 3.0, prose(60, 1)),
        candidate("large", 2.0, prose(150, 2)),
        candidate("small", 1.0, prose(20, 3)),
    ]
    pack.pack(offered, 300, floor=0.8)
    assert names(pack) == ["first"]


def test_the_rest_is_filled_by_a_cut() -> None:
    pack = packing(420)
    text = "\n\n".join(prose(20, n) for n in range(7))
    left = pack.pack([candidate("first", 3.0, prose(50, 20)), candidate("long", 2.0, text)], 420)
    assert pack.fill(left, 420)
    assert "[cut here; the rest: " in joined(pack.documents())
    assert 300 <= pack.used <= 420
    assert not pack.fill(left, 420)


def test_a_section_too_large_for_the_budget_is_cut_so_that_others_come() -> None:
    pack = packing(2000)
    text = "\n\n".join(prose(40, n) for n in range(60))
    pack.pack([candidate("huge", 3.0, text), candidate("other", 1.0, prose(60, 99))], 2000)
    assert names(pack) == ["huge", "other"]
    assert 600 < COUNTER.count(pack.documents()[0].text) <= 800


def test_text_that_is_packed_already_is_not_packed_again() -> None:
    pack = packing(3000)
    text = prose(80, 1)
    copies = [candidate("a", 2.0, text), candidate("b", 1.0, f"**{text.upper()}** And so on.")]
    pack.pack(copies, 3000)
    assert names(pack) == ["a"]
    assert not pack.lacks(copies[1])


def test_one_document_does_not_take_all_when_breadth_counts() -> None:
    text = "# Long\n\n" + "\n\n".join(f"## S{n}\n\n{prose(110, n)}" for n in range(6))
    long = [Candidate(one, Fit(1.1)) for one in passages_of(document("practices/long.md", text))]
    offered = [*long, candidate("other", 1.0, prose(110, 9))]
    for same, expected in ((1.0, ["Long"]), (0.8, ["Long", "other"])):
        pack = packing(900, same)
        pack.pack(offered, 900)
        assert sorted(set(names(pack))) == expected


def test_a_layer_past_its_share_gives_way() -> None:
    offered = [candidate(f"p{n}", 1.1, prose(60, n)) for n in range(8)]
    offered += [candidate(f"c{n}", 1.0, prose(60, 20 + n), "core") for n in range(8)]
    pack = packing(900, practices=0.5, core=0.5)
    pack.pack(offered, 900)
    layers = [held.document.layer for held in pack.documents()]
    assert 2 <= layers.count("core") <= 4


def test_sections_of_one_document_share_a_heading() -> None:
    text = "# Doc\n\n" + "\n\n".join(f"## S{n}\n\n{prose(110, n)}" for n in range(4))
    one, two, _, four = passages_of(document("practices/doc.md", text))
    pack = packing(1200)
    pack.pack([Candidate(four, Fit(1.2)), Candidate(one, Fit(1.1)), Candidate(two, Fit(1.0))], 1200)
    (held,) = pack.documents()
    assert held.lines == "3-9,15-17"


def test_what_is_worth_too_little_does_not_come() -> None:
    pack = packing(2000)
    offered = [candidate(f"p{n}", 1.0 - n / 10, prose(40, n)) for n in range(8)]
    assert pack.pack(offered, 2000, stop=0.65) == []
    assert names(pack) == ["p0", "p1", "p2", "p3"]


def test_documents_come_in_as_they_are_taken_or_in_a_given_order() -> None:
    pack = packing(2000)
    pack.pack([candidate("b", 2.0, prose(40)), candidate("a", 1.0, prose(40, 1))], 2000)
    assert names(pack) == ["b", "a"]
    places = {".knowledge/practices/a.md": 0}
    assert [held.document.title for held in pack.documents(places)] == ["a", "b"]


def test_what_came_last_can_be_dropped() -> None:
    pack = packing(900)
    pack.pack([candidate("a", 2.0, prose(60)), candidate("b", 1.0, prose(60, 1))], 900)
    pack.drop_last()
    assert names(pack) == ["a"]
    assert pack.used == TokenTally(COUNTER).document(pack.documents()[0])
