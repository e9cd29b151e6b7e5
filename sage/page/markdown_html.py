"""A document as HTML that is safe to show, whatever stands in it.

Raw HTML is shown as the text it is; comments and the marks of site generators are left out, as for
agents; images are named, never loaded;
a link leads to a page of the knowledge base, to the web, or is no link. Headings carry the
anchors that topics use.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token
from markdown_it.utils import EnvType

from sage.documents.document import Document
from sage.documents.plain_text import without_site_marks
from sage.sanitize import clean

# The inline rules are quadratic in open brackets; what has more is shown as it is written.
_MAX_INLINE = 20_000
_MAX_MARKS = 400
# A megabyte of list items took 15 s: what nobody would read as a page is shown as it is written.
_MAX_LINES = 20_000
_MAX_ALL_MARKS = 40_000
_WEB = ("https://", "http://", "mailto:")

TopicAt = Callable[[str], str | None]
"""The topic of the page at a path below the root, when there is one."""


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text stands: what its headings are called, and where its links lead."""

    anchors: Mapping[int, str]
    """The anchor of the heading that begins at a line of the text."""
    path: str
    topic_at: TopicAt


class MarkdownHtml:
    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._parser.core.ruler.enableOnly(["normalize", "block"])
        for name, rule in _RULES.items():
            self._parser.add_render_rule(name, _rendering(rule))

    def of(self, document: Document, topic_at: TopicAt) -> str:
        """The body of a document."""
        first = document.sections[0].start_line if document.sections else 1
        anchors = {one.start_line - first: one.anchor for one in document.sections if one.level}
        env = {"place": TextPlace(anchors, document.path, topic_at)}
        text = clean(without_site_marks(document.body))
        if text.count("\n") > _MAX_LINES:
            return f'<pre class="html"><code>{escape(text)}</code></pre>\n'
        tokens = self._parser.parse(text, env)
        marks = 0
        for token in tokens:
            if token.type == "inline":
                marks += _marks(token.content)
                token.children = self._children(token.content, env, marks <= _MAX_ALL_MARKS)
        html: str = self._parser.renderer.render(tokens, self._parser.options, env)
        return html

    def _children(self, content: str, env: dict[str, TextPlace], is_parsed: bool) -> list[Token]:
        children: list[Token] = []
        if is_parsed and len(content) <= _MAX_INLINE and _marks(content) <= _MAX_MARKS:
            self._parser.inline.parse(content, self._parser, env, children)
        else:
            plain = Token("text", "", 0)
            plain.content = content
            children.append(plain)
        return children


def _marks(content: str) -> int:
    return sum(map(content.count, "[]*_`<!~"))


def _html_block(tokens: Sequence[Token], index: int, _: TextPlace) -> str:
    shown = _without_comments(tokens[index].content).strip()
    return f'<pre class="html"><code>{escape(shown)}</code></pre>\n' if shown else ""


def _html_inline(tokens: Sequence[Token], index: int, _: TextPlace) -> str:
    content = tokens[index].content
    return "" if content.startswith("<!--") else f"<code>{escape(content)}</code>"


def _image(tokens: Sequence[Token], index: int, _: TextPlace) -> str:
    words = "".join(child.content for child in tokens[index].children or [])
    return f'<span class="image">{escape(words) or "no description"}</span>'


def _heading_open(tokens: Sequence[Token], index: int, place: TextPlace) -> str:
    token = tokens[index]
    anchor = place.anchors.get(token.map[0], "") if token.map and not token.level else ""
    if not anchor:
        return f"<{token.tag}>"
    return (
        f'<{token.tag} id="{escape(anchor)}"><a class="anchor" href="#{quote(anchor)}"'
        f' aria-label="Link to this section">#</a>'
    )


def _table_open(*_: object) -> str:
    return '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"


def _cell_open(tokens: Sequence[Token], index: int, _: TextPlace) -> str:
    # The alignment would be an inline style, which the policy forbids.
    style = str(tokens[index].attrGet("style") or "")
    side = next((side for side in ("right", "center") if side in style), "")
    return f'<{tokens[index].tag} class="{side}">' if side else f"<{tokens[index].tag}>"


def _code(tokens: Sequence[Token], index: int, _: TextPlace) -> str:
    token = tokens[index]
    words = unescapeAll(token.info).split()
    label = f' data-language="{escape(words[0][:40])}"' if words else ""
    return f'<pre tabindex="0"{label}><code>{escape(token.content)}</code></pre>\n'


def _link_open(tokens: Sequence[Token], index: int, place: TextPlace) -> str:
    href = _href(tokens[index], place)
    if not href:
        return '<span class="no-link">'
    away = "" if href.startswith(("/", "#")) else ' rel="noopener noreferrer nofollow"'
    return f'<a href="{escape(href)}"{away}>'


def _link_close(tokens: Sequence[Token], index: int, place: TextPlace) -> str:
    # Links do not nest: the one that opened last is the one that closes.
    opened = next(token for token in reversed(tokens[:index]) if token.type == "link_open")
    return "</a>" if _href(opened, place) else "</span>"


Rule = Callable[[Sequence[Token], int, TextPlace], str]
_RULES: Mapping[str, Rule] = {
    "html_block": _html_block,
    "html_inline": _html_inline,
    "image": _image,
    "heading_open": _heading_open,
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _cell_open,
    "td_open": _cell_open,
    "fence": _code,
    "code_block": _code,
    "link_open": _link_open,
    "link_close": _link_close,
}


def _rendering(rule: Rule) -> Callable[..., str]:
    """A rule as markdown-it calls it: as a method of its renderer."""

    def render(_: object, tokens: Sequence[Token], index: int, _o: object, env: EnvType) -> str:
        return rule(tokens, index, env["place"])

    return render


def _href(link: Token, place: TextPlace) -> str:
    """Where a link may lead; empty when nowhere."""
    target = clean(str(link.attrGet("href") or "")).strip()
    if target.lower().startswith(_WEB):
        return target
    path, _, anchor = target.partition("#")
    heading = f"#{quote(unquote(anchor))}" if anchor else ""
    if not path:
        return heading
    if ":" in path or path.startswith("//"):
        return ""
    inner = unquote(path.partition("?")[0])
    folder = "" if inner.startswith("/") else posixpath.dirname(place.path)
    topic = place.topic_at(posixpath.normpath(posixpath.join(folder, inner.lstrip("/"))))
    return f"/read/{quote(topic)}{heading}" if topic else ""


def _without_comments(html: str) -> str:
    kept, at = [], 0
    while (start := html.find("<!--", at)) >= 0:
        kept.append(html[at:start])
        end = html.find("-->", start)
        if end < 0:
            return "".join(kept)
        at = end + 3
    return "".join((*kept, html[at:]))
