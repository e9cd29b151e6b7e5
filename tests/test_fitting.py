import re

from hypothesis import given
from hypothesis import strategies as st

from sage.answers import Omitted
from sage.documents.document import Document, Slice, parse_document, under_heading, whole
from sage.fitting import Reading, fit
from sage.sanitize import clean
from sage.token_counter import TokenCounter


def document(text: str, name: str = "a") -> Document:
    return parse_document(text, f".knowledge/core/{name}.md", "core")


def pages(count: int, words: int = 40) -> list[Slice]:
    return [whole(document(f"# Page {n}\n\n" + "word " * words, f"p{n}")) for n in range(count)]


def unread(*topics: str) -> list[Omitted]:
    return [Omitted(topic=topic, title=topic, tokens=None) for topic in topics]


def test_everything_that_fits_comes_whole_under_its_path(counter: TokenCounter) -> None:
    parts = [whole(document("# A\n\nOne.\n\n", "a")), whole(document("\nTwo.\n", "b"))]
    reading = fit(parts, [], 8_000, counter)
    content = (
        "<!-- .knowledge/core/a.md -->\n\n# A\n\nOne.\n\n<!-- .knowledge/core/b.md -->\n\nTwo."
    )
    assert reading == Reading(content, counter.count(content), [], True)


def test_nothing_at_all_is_a_complete_answer(counter: TokenCounter) -> None:
    assert fit([], [], 1, counter) == Reading("", 0, [], True)


def test_what_fits_exactly_is_complete_and_one_token_less_is_not(counter: TokenCounter) -> None:
    parts = pages(3)
    needed = fit(parts, [], 8_000, counter).token_count
    assert fit(parts, [], needed, counter).complete
    assert not fit(parts, [], needed - 1, counter).complete


def test_cut_answer_holds_whole_documents_in_order_and_the_next_call(
    counter: TokenCounter,
) -> None:
    reading = fit(pages(10), [], 300, counter)
    assert not reading.complete
    shown = reading.content.count("<!-- ")
    assert 0 < shown < 10
    assert reading.content.endswith(
        f'[Cut here, {10 - shown} more parts. Next: sage_get_knowledge(topic="core/p{shown}")]'
    )
    assert reading.omitted[0]["topic"] == f"core/p{shown}"
    assert reading.omitted[0]["title"] == f"Page {shown}"
    assert reading.omitted[0]["tokens"] == counter.count(pages(10)[shown].text)


LONG = "# Big\n\nIntro.\n\n" + "".join(
    f"## Part {number}\n\n" + "word " * 250 + f"\n\n### Detail {number}\n\nMore.\n\n"
    for number in range(9)
)


def test_page_that_does_not_fit_comes_as_its_outline_and_its_beginning(
    counter: TokenCounter,
) -> None:
    page = document(LONG)
    reading = fit([whole(page)], [], 1_500, counter)
    assert reading.content.startswith("<!-- .knowledge/core/a.md:1-")
    assert "# Big\n\nIntro." in reading.content
    assert "## Part 1\n" in reading.content
    tokens = counter.count(under_heading(page, 3).text)
    assert f"- Part 1: core/a#part-1 ({tokens} tokens)\n" in reading.content
    assert "- Part 8: core/a#part-8 (" in reading.content
    assert not reading.complete


def test_outline_goes_as_deep_as_there_is_room(counter: TokenCounter) -> None:
    page = document(LONG)
    assert "  - Detail 8: core/a#detail-8 (" in fit([whole(page)], [], 2_000, counter).content
    assert "Detail 8" not in fit([whole(page)], [], 700, counter).content


def test_every_cost_that_is_told_is_what_reading_the_topic_costs(counter: TokenCounter) -> None:
    page = document(LONG)
    reading = fit([whole(page)], [], 1_500, counter)
    by_topic = {under_heading(page, at).topic: under_heading(page, at) for at in range(19)}
    told = dict(re.findall(r"(\S+#\S+) \((\d+) tokens\)", reading.content))
    told |= {one["topic"]: one["tokens"] for one in reading.omitted}
    assert len(told) > 9
    for topic, tokens in told.items():
        assert fit([by_topic[topic]], [], 8_000, counter).token_count == int(tokens)


def test_page_without_headings_is_cut_between_paragraphs(counter: TokenCounter) -> None:
    text = "".join(f"Paragraph {n} " + "word " * 30 + "\n\n" for n in range(50))
    reading = fit([whole(document(text))], [], 400, counter)
    assert "Paragraph 0" in reading.content
    shown = reading.content.rpartition("\n\n[Cut here")[0]
    assert shown.endswith("word")
    assert reading.content.endswith(")]")
    assert [one["topic"] for one in reading.omitted] == ["core/a"]


def test_call_for_what_comes_next_needs_no_limit_of_its_own(counter: TokenCounter) -> None:
    reading = fit(pages(2, words=150), [], 300, counter)
    assert reading.content.count("<!-- ") == 1
    assert reading.content.endswith('Next: sage_get_knowledge(topic="core/p1")]')


def test_blank_lines_above_the_first_heading_are_no_part(counter: TokenCounter) -> None:
    page = document("---\nowner: me\n---\n\n# Title\n\n" + "word " * 90 + "\n\n## More\n")
    reading = fit([whole(page)], [], 60, counter)
    assert [omitted["topic"] for omitted in reading.omitted] == ["core/a"]
    assert 'topic="core/a"' in reading.content


def test_section_too_large_for_the_limit_is_named_with_the_limit_it_needs(
    counter: TokenCounter,
) -> None:
    part = whole(document("# Big\n\n" + "word " * 5_000))
    reading = fit([part], [], 100, counter)
    assert reading.content.startswith("[Cut here. Next: sage_get_knowledge(")
    limit = int(reading.content.rpartition("max_tokens=")[2].rstrip(")]"))
    assert fit([part], [], limit, counter).complete


def test_limit_of_one_token_names_only_what_was_left_out(counter: TokenCounter) -> None:
    reading = fit(pages(5), [], 1, counter)
    assert (reading.content, reading.token_count, reading.complete) == ("", 0, False)
    assert [omitted["topic"] for omitted in reading.omitted] == ["core/p0"]


def test_many_tiny_documents_are_cut_where_their_marks_fill_the_limit(
    counter: TokenCounter,
) -> None:
    parts = [whole(document("x", f"p{number}")) for number in range(400)]
    reading = fit(parts, [], 2_000, counter)
    assert not reading.complete
    assert 1_500 < reading.token_count <= 1_800
    assert 50 < reading.content.count("<!-- ") < 400


def test_outline_keeps_to_its_share_of_the_limit(counter: TokenCounter) -> None:
    reading = fit(pages(200), [], 1_000, counter)
    outlined = sum(counter.count(str(omitted)) for omitted in reading.omitted)
    assert 1 < len(reading.omitted) < 50
    assert outlined <= 100


def test_what_was_not_read_in_time_is_left_out_and_named(counter: TokenCounter) -> None:
    reading = fit(pages(1), unread("core/late", "core/later"), 8_000, counter)
    assert "# Page 0" in reading.content
    assert reading.content.endswith('Next: sage_get_knowledge(topic="core/late")]')
    assert not reading.complete
    assert reading.omitted == unread("core/late", "core/later")


def test_nothing_is_counted_when_there_was_no_time_to_load_the_vocabulary() -> None:
    reading = fit([], unread(*"abc"), 8_000, TokenCounter())
    assert reading == Reading("", 0, unread(*"abc"), False)


def test_text_leaves_without_what_breaks_a_reader(counter: TokenCounter) -> None:
    hostile = "# A\r\n\x1b[31mred\x1b[0m \ud800 zero\u200bwidth\x00\r\n"
    reading = fit([whole(document(hostile))], [], 8_000, counter)
    assert reading.content.endswith("# A\nred \ufffd zerowidth")
    assert reading.token_count == counter.count(reading.content)


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.sampled_from(["# h\n", "## i\n", "word ", "\n", "\r\n", "é漢 ", "\u200b"]))
        .map("".join)
        .map(lambda text: text * 3),
    ),
    max_size=5,
)


@given(texts=TEXTS, limit=st.integers(1, 400), late=st.integers(0, 2))
def test_answer_never_exceeds_its_limit_and_counts_itself_exactly(
    texts: list[str], limit: int, late: int, counter: TokenCounter
) -> None:
    parts = [whole(document(text, f"p{number}")) for number, text in enumerate(texts)]
    reading = fit(parts, unread(*["core/late"] * late), limit, counter)
    assert reading.token_count == counter.count(reading.content) <= limit
    assert clean(reading.content) == reading.content
    assert reading.complete == (not reading.omitted)
    if reading.complete:
        assert reading.content == "\n\n".join(part.text for part in parts)
