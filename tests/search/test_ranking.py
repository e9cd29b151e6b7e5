import pytest

from tests.conftest import Base
from tests.indexed_base import IndexedBase

FILLER = "Nothing of interest stands here, only words that fill a page of usual length. " * 3


def indexed(base: Base, pages: dict[str, str]) -> IndexedBase:
    filler = {f"core/filler{n}.md": f"# Filler {n}\n\n{FILLER}\n" for n in range(6)}
    base.write({**filler, **pages})
    return IndexedBase(base)


def test_a_page_with_more_of_the_rare_words_wins(base: Base) -> None:
    made = indexed(
        base,
        {
            "core/one.md": f"# One\n\nretry retry retry retry. {FILLER}",
            "core/both.md": f"# Both\n\nretry with backoff. {FILLER}",
        },
    )
    assert made.paths("retry backoff")[0] == "core/both.md"


def test_the_exact_form_stays_ahead(base: Base) -> None:
    made = indexed(
        base,
        {
            "core/a.md": f"# A\n\nWe are deploying often. {FILLER}",
            "core/b.md": f"# B\n\nWe do deploys often. {FILLER}",
        },
    )
    assert made.paths("deploys") == ["core/b.md", "core/a.md"]
    assert made.paths("deploying") == ["core/a.md", "core/b.md"]


@pytest.mark.parametrize(
    "front_matter", ["title: Backoff", "aliases: [backoff]", "tags: [backoff]", "summary: backoff"]
)
def test_what_a_page_says_of_itself_is_found(base: Base, front_matter: str) -> None:
    made = indexed(base, {"core/a.md": f"---\n{front_matter}\n---\n# A\n\n{FILLER}"})
    assert made.paths("backoff") == ["core/a.md"]


def test_words_of_the_path_are_found(base: Base) -> None:
    made = indexed(base, {"practices/ERROR_HANDLING/README.md": f"# A\n\n{FILLER}"})
    assert made.paths("error handling") == ["practices/ERROR_HANDLING/README.md"]


def test_a_title_match_beats_a_mention(base: Base) -> None:
    made = indexed(
        base,
        {
            "core/a.md": f"# Backoff\n\nWait longer each time. {FILLER}",
            "core/b.md": f"# Other\n\nThere is also backoff. {FILLER}",
        },
    )
    assert made.paths("backoff") == ["core/a.md", "core/b.md"]


def test_words_that_stand_together_beat_words_apart(base: Base) -> None:
    made = indexed(
        base,
        {
            "core/apart.md": f"# A\n\nThe zebra sleeps. {FILLER} A crossing is near.",
            "core/close.md": f"# B\n\nThe zebra crossing. {FILLER} It is very near.",
        },
    )
    assert made.paths("zebra crossing")[0] == "core/close.md"


def test_the_best_section_is_shown(base: Base) -> None:
    page = (
        "# Page\n\nText.\n\n## One\n\nzebra\n\n## Two\n\nzebra crossing zebra\n\n## Three\n\nno\n"
    )
    made = indexed(base, {"core/a.md": page})
    assert made.search("zebra crossing").sections[0].heading == "Page > Two"


def test_tables_of_contents_do_not_match(base: Base) -> None:
    toc = "# Page\n\nText.\n\n## Contents\n\n- [Zebra](#x)\n\n## Related\n\n- [zebra](z.md)\n"
    assert indexed(base, {"core/a.md": toc}).paths("zebra") == []


def test_equal_pages_are_ordered_by_path(base: Base) -> None:
    made = indexed(base, {f"core/{name}.md": f"# {name * 2}\n\nzebra\n" for name in "cab"})
    assert made.paths("zebra") == ["core/a.md", "core/b.md", "core/c.md"]
