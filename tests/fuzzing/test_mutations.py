"""A short run of `make fuzz`."""

from pathlib import Path

import pytest

from tests.fuzzing.__main__ import Result, Target, fuzz, main
from tests.fuzzing.mutation import PAGES, Mutator


def test_mutated_pages_and_queries_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--inputs", "6000", "--seed", "3", "--save", str(tmp_path)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "pages: 3,000 inputs" in said
    assert "queries: 3,000 inputs" in said


class Fragile(Target):
    """Breaks at every page with a tab."""

    def check(self, text: str, thoroughly: bool) -> None:
        assert "\t" not in text, "a tab"


def test_an_input_that_fails_is_saved_and_shown(tmp_path: Path) -> None:
    result = found(tmp_path)
    assert 0 < len(result.failures) <= 5
    path = Path(result.failures[0].partition("\n")[0])
    assert b"\t" in path.read_bytes()
    assert "a tab" in result.failures[0]


def test_the_same_seed_tries_the_same_inputs(tmp_path: Path) -> None:
    assert found(tmp_path).failures == found(tmp_path).failures
    one, other = Mutator(PAGES, 1), Mutator(PAGES, 2)
    assert [one.next() for _ in range(20)] != [other.next() for _ in range(20)]


def found(folder: Path) -> Result:
    return fuzz(Fragile(), Mutator(PAGES, 1), 2_000, 60, folder)
