"""Token counts of pieces that add up to the count of the whole."""

from hypothesis import given
from hypothesis import strategies as st

from sage.parts import Excerpt, joined, parts_of
from sage.passages import passages_of
from sage.tally import Tally
from sage.tokens import ESTIMATE, TokenCounter
from tests.contexts import COUNTER, document

line = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=60
)
body = st.lists(st.one_of(line, st.just("    code"), st.just("/path"), st.just("")), max_size=8)


@given(st.lists(body, min_size=1, max_size=5))
def test_pieces_add_up_to_the_whole(bodies: list[list[str]]) -> None:
    sections = "\n\n".join(f"## S{n}\n\n" + "\n".join(lines) for n, lines in enumerate(bodies))
    page = document("practices/a.md", f"# A\n\n{sections}\n")
    parts = list(parts_of([Excerpt(one) for one in passages_of(page)][::2]))
    assert Tally(COUNTER).whole(parts) == COUNTER.count(joined(parts))


def test_without_a_vocabulary_bytes_add_up_too() -> None:
    counter = TokenCounter("o200k_base", {"TIKTOKEN_CACHE_DIR": "/nonexistent"})
    parts = list(parts_of([Excerpt(one) for one in passages_of(document("core/a.md", "# Ä\n\nö"))]))
    assert counter.encoding == ESTIMATE
    assert Tally(counter).whole(parts) == len(joined(parts).encode())


def test_a_piece_is_counted_once() -> None:
    counted: list[str] = []

    class Listening(TokenCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    tally = Tally(Listening())
    (part,) = parts_of([Excerpt(passages_of(document("core/a.md", "# A\n\nText."))[0])])
    assert tally.part(part) == tally.part(part)
    assert counted == ["# A (.knowledge/core/a.md:1-3)\n\n", "Text.\n\n"]


def test_no_parts_are_no_tokens() -> None:
    assert Tally(COUNTER).whole([]) == 0
