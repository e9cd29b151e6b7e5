import threading

import pytest

from sage.terms.analysis import Stemmer
from tests.conftest import Base
from tests.indexed_base import IndexedBase

STEM = Stemmer().stem


@pytest.mark.parametrize(
    "forms",
    [
        ("run", "runs", "running"),
        ("add", "adds", "added", "adding"),
        ("err", "erred", "erring"),
        ("organize", "organizes", "organized", "organization"),
        ("internal", "internally", "internals"),
        ("international", "internationally"),
        ("university", "universities"),
        ("emergency", "emergencies"),
        ("paste", "pastes", "pasted", "pasting"),
        ("plan", "planned", "planning"),
    ],
)
def test_the_forms_of_one_word_share_a_stem(forms: tuple[str, ...]) -> None:
    assert len({STEM(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("added", "ad"),
        ("odd", "ode"),
        ("organization", "organ"),
        ("internal", "intern"),
        ("university", "universe"),
        ("emergency", "emerge"),
        ("paste", "past"),
        ("evening", "even"),
        ("interval", "interview"),
    ],
)
def test_different_words_do_not(one: str, other: str) -> None:
    assert STEM(one) != STEM(other)


@pytest.mark.parametrize("form", ["数据", "c++", "go", "v2", "naïve"])
def test_what_is_no_english_word_is_its_own_stem(form: str) -> None:
    assert STEM(form) == form


def test_threads_share_one_stemmer() -> None:
    stemmer, wrong = Stemmer(), list[str]()

    def ask(start: int) -> None:
        for number in range(start, start + 2_000):
            letters = "".join(chr(97 + int(digit)) for digit in str(number % 500))
            if stemmer.stem(f"zz{letters}ings") != stemmer.stem(f"zz{letters}ing"):
                wrong.append(letters)

    threads = [threading.Thread(target=ask, args=(n * 100,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_search_for_added_does_not_find_an_ad(base: Base) -> None:
    base.write(
        {
            "core/ads.md": "# Banner\n\nAn ad is shown for ten seconds.\n",
            "core/columns.md": "# Columns\n\nA column is added by a migration.\n",
        }
    )
    assert IndexedBase(base).paths("added") == ["core/columns.md"]
    assert IndexedBase(base).paths("add") == ["core/columns.md"]
