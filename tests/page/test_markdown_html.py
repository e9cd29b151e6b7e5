"""What a page may contain and what of it reaches a browser."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.document import parse_document
from sage.page.markdown_html import MarkdownHtml

ALLOWED = frozenset(
    [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "div",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
ATTRIBUTES = {
    "href",
    "id",
    "class",
    "rel",
    "aria-label",
    "tabindex",
    "role",
    "data-language",
    "start",
}


def shown(text: str) -> str:
    known = {".knowledge/core/b.md": "core/b"}
    return MarkdownHtml().of(parse_document(text, ".knowledge/core/a.md", "core"), known.get)


class Reader(HTMLParser):
    """Collects what a browser would make of it."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.wrong.append(tag)
        for name, value in attributes:
            if name not in ATTRIBUTES:
                self.wrong.append(f"{tag} {name}")
            if name == "href" and not str(value).startswith(("#", "/read/", "http", "mailto:")):
                self.wrong.append(f"{tag} {name}={value}")


def wrong_in(html: str) -> list[str]:
    reader = Reader()
    reader.feed(html)
    return reader.wrong


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](JaVaScRiPt:alert(1))",
        "[x](\x01javascript:alert(1))",
        "[x](//evil.example/x)",
        "![x](https://evil.example/x.png)",
        "<svg onload=alert(1)>",
        '# <b onclick="x">h</b>',
        '```"><script>alert(1)</script>\nx\n```',
        "| <script>x</script> |\n|---|\n| <img src=x onerror=x> |",
        '[x](b.md "><script>alert(1)</script>")',
        "<a href='javascript:x'>x</a>",
        '<https://evil.example/"onmouseover=alert(1)>',
    ],
)
def test_nothing_that_runs_or_loads_reaches_the_browser(text: str) -> None:
    assert wrong_in(shown(text)) == []


@given(st.text(alphabet="<>[]()!\"'`*_#|-:/ax \n&;=", max_size=200))
def test_any_text_becomes_safe_html(text: str) -> None:
    assert wrong_in(shown(text)) == []


def test_a_link_to_a_page_leads_to_its_topic() -> None:
    assert 'href="/read/core/b#c"' in shown("[x](b.md#c)")
    assert 'href="/read/core/b"' in shown("[x](./b.md)")


def test_headings_carry_the_anchors_of_their_topics() -> None:
    assert '<h2 id="two-words">' in shown("# A\n\n## Two words\n")


def test_marks_of_site_generators_are_not_shown_and_anchors_stay() -> None:
    html = shown("{{< toc >}}\n\n# A { #top }\n\n> [!NOTE]\n> Words.\n\n## Two words {#two}\n")
    assert '<h2 id="two">' in html
    assert not {"{", "[!NOTE]"} & set(html.replace("<", " ").split())
    assert "toc" not in html


def test_comments_are_not_shown() -> None:
    assert "secret" not in shown("a\n\n<!-- secret -->\n\nb <!-- secret --> c")


def test_very_many_brackets_are_shown_as_they_are_written() -> None:
    text = "[" * 50_000
    assert text in shown(text)


def test_a_page_of_very_many_lines_is_shown_as_it_is_written() -> None:
    html = MarkdownHtml().of(parse_document("- <b>\n" * 30_000, "a.md", "core"), lambda _: None)
    assert html.startswith('<pre class="html"><code>- &lt;b&gt;\n')
    assert "<li>" not in html


def test_links_beyond_very_many_are_shown_as_they_are_written() -> None:
    text = ("[a](https://example.org) " * 20 + "\n\n") * 1_200
    html = MarkdownHtml().of(parse_document(text, "a.md", "core"), lambda _: None)
    assert 0 < html.count("<a href=") < 20 * 1_200
    assert html.rstrip().endswith("[a](https://example.org)</p>")
