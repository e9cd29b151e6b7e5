"""Sections that say the same are found, and others are not, without comparing all pairs."""

import random

from sage.documents.document import Document, parse_document
from sage.notes.duplicates import duplicates
from sage.notes.similarity import alike, pairs_of

WORDS = [f"{a}{b}{c}" for a in "bdgklmnprst" for b in "aeiou" for c in ("n", "st", "rk", "l")]


def sentence(chance: random.Random, words: int) -> list[str]:
    return [WORDS[min(int(chance.expovariate(0.02)), len(WORDS) - 1)] for _ in range(words)]


def changed(chance: random.Random, words: list[str]) -> list[str]:
    """The same text after an edit: some words replaced, some dropped, one added."""
    kept = [word if chance.random() > 0.06 else chance.choice(WORDS) for word in words]
    kept = [word for word in kept if chance.random() > 0.03]
    return [*kept[:5], chance.choice(WORDS), *kept[5:]]


def test_planted_near_duplicates_are_found_and_nothing_else() -> None:
    chance = random.Random(5)
    texts = [sentence(chance, chance.randrange(30, 120)) for _ in range(2_000)]
    planted = {(number, 2_000 + number) for number in range(200)}
    texts += [changed(chance, texts[number]) for number in range(200)]
    found = {
        (first, second)
        for first, second, _ in alike([pairs_of(" ".join(text)) for text in texts], 0.6)
    }
    assert len(found & planted) / len(planted) >= 0.9
    assert len(found & planted) / len(found) >= 0.9


def test_two_pages_that_say_the_same_are_listed_with_the_sentence() -> None:
    text = "A carrier call that timed out is tried three times with a growing pause between them."
    pages = [page("a", text), page("b", f"{text} Then it fails."), page("c", "Something else.")]
    found = duplicates(pages)
    assert [(one.first, one.second) for one in found] == [("core/a#a", "core/b#b")]
    assert found[0].sentences[0].startswith("A carrier call that timed out")


def test_many_copies_are_each_listed_once_with_the_first() -> None:
    text = "The same footer of many words stands at the end of every single page here."
    found = duplicates([page("a", text.replace("same", "same")) for _ in range(3)])
    assert len(found) <= 3
    short = duplicates([page("x", "Short."), page("y", "Short.")])
    assert short == []


def page(name: str, text: str) -> Document:
    return parse_document(f"# {name}\n\n{text}\n", f".knowledge/core/{name}.md", "core")
