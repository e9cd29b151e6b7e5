"""What a person sees of each answer. How it is printed is up to `terminal`.

What one command prints about is no reason for another to import it: imports are for types, or
stand inside the functions.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sage.answers import (
    ContextAnswer,
    ContextSource,
    IndexInfo,
    InfoAnswer,
    KnowledgeAnswer,
    KnowledgeBaseInfo,
    LayerInfo,
    MeaningInfo,
    ProblemsInfo,
    ReplicaInfo,
    ScopeAnswer,
    SearchAnswer,
    SearchResult,
    SourceInfo,
)
from sage.cli.terminal import (
    Piece,
    Titles,
    is_quiet,
    print_content,
    print_line,
    print_marked,
    print_note,
    print_rows,
    print_table,
)
from sage.errors import counted
from sage.values import OWN

if TYPE_CHECKING:
    from sage.page_list import PageInfo, PagesAnswer
    from sage.search.explain import Explanation
    from sage.search.fusion import MeaningPart

BLANK: Piece = ("", "")
"""An empty line."""


def print_knowledge(answer: KnowledgeAnswer, titles: Titles | None = None) -> None:
    """The content of documents, and on stderr what did not fit."""
    metadata = answer["metadata"]
    if not answer["content"] and metadata["complete"]:
        print_note("nothing is there yet; sage init writes a few pages to start from")
        return
    print_content(answer["content"], titles)
    if not metadata["complete"]:
        left_out = counted(max(1, len(metadata["omitted"])), "part")
        print_note(
            f"not complete: at least {left_out} left out; "
            "see the last line, or allow more with --max-tokens or --timeout-ms"
        )


def print_results(query: str, answer: SearchAnswer, is_empty: bool = False) -> None:
    """Search results with the words of the query marked, and whether they answer it."""
    words = re.findall(r"\w{3,}", query)
    for result in answer["results"]:
        lines = "-".join(map(str, result["lines"]))
        print_line((result["title"], "bold"), (f"  {result['score']:.2f}", "dim"), indent=2)
        if standing := _standing(result):
            print_line((f"  {standing}", "yellow"), indent=2)
        cost = counted(result["tokens"], "token")
        place = f"  {result['path']}:{lines}  {result['topic']} ({cost})"
        print_line((place, "dim"), indent=2)
        for line in result["snippet"].splitlines():
            print_marked(line, words, indent=2)
        print_line(BLANK)
    if not is_quiet() or answer["found"] == "no":
        print_line((_verdict(answer, is_empty), "dim"))


def _verdict(answer: SearchAnswer, is_empty: bool) -> str:
    """What a search found, in words."""
    if is_empty:
        return "the knowledge base has no pages yet; sage init writes the first ones"
    shown = f"{len(answer['results'])} of {counted(answer['total'], 'document')}"
    said = {"yes": shown, "partly": f"partly found: {shown}"}.get(answer["found"])
    if said is None:
        said = "nothing found" + ("; the nearest are above" if answer["results"] else "")
    missing = ", ".join(f'"{word}"' for word in answer.get("missing", ()))
    on = f"--offset {answer['next_offset']} shows more" if "next_offset" in answer else ""
    parts = (said, f"in no document: {missing}" if missing else "", answer.get("note", ""), on)
    return "; ".join(filter(None, parts))


def _standing(result: SearchResult) -> str:
    """Why not to rely on a page without a second look; empty for most."""
    successor = result.get("superseded_by", "")
    copies = result.get("copies", 0)
    parts = (
        f"id {result['id']}" if "id" in result else "",
        result.get("status", "") + (f": read {successor}" if successor else ""),
        f"last updated {result['last_updated']}" if "last_updated" in result else "",
        f"{counted(copies, 'other page')} the same" if copies else "",
        f"by {result['by']}" if "by" in result else "",
        _origin(result.get("source", OWN), result.get("overrides", ())),
    )
    return ", ".join(filter(None, parts))


def _origin(source: str, overrides: Sequence[str]) -> str:
    """Where a page comes from, when that is not the repository, and what it overrides."""
    words = "" if source == OWN else f"from {source}"
    over = f"overrides {', '.join(overrides)}" if overrides else ""
    return ", ".join(filter(None, (words, over)))


def print_reasons(reasons: Sequence["Explanation"]) -> None:
    """What each result of a search owes its place to."""
    for one in reasons:
        print_line((one.path, "bold"), (f"  {one.score:.3f}", "dim"))
        parts = f"document {one.document_part:.2f} + section {one.section_part:.2f}"
        print_line((f"  {one.heading}: ({parts}) x {one.standing:.2f}", ""), indent=4)
        rows = [
            (
                f"  {share.word}",
                f"in {counted(share.documents, 'document')}",
                _amounts(share.fields),
            )
            for share in one.shares
        ]
        print_table(("  word", "rarity", "strength by field"), rows)
        if one.meaning is not None:
            print_line((f"  {_meaning_part(one.meaning)}", ""), indent=4)
        print_line(BLANK)


def _meaning_part(part: "MeaningPart") -> str:
    found = "no word led here; " if part.is_alone else ""
    near = f"similarity {part.similarity:.3f}" if part.section >= 0 else "no vector yet"
    return f"meaning: {found}{near}, weight {part.weight:.1f} against words {part.words:.2f}"


def print_choices(answer: ContextAnswer) -> None:
    """What a context holds, what came next, and why."""
    rows = [
        (one["lines"], one["topic"], ", ".join(filter(None, (one["why"], _origin_of(one)))))
        for one in answer["sources"]
    ]
    print_table(("lines", "included", "why"), rows)
    if answer.get("omitted"):
        print_line(BLANK)
        print_table(("next, did not fit",), [(topic,) for topic in answer["omitted"]])
    if answer.get("note"):
        print_line(BLANK)
        print_line((answer["note"], ""))
    print_line(BLANK)
    print_line((counted(answer["token_count"], "token"), ""))


def _origin_of(source: ContextSource) -> str:
    return _origin(source.get("source", OWN), source.get("overrides", ()))


def print_scopes(answers: Sequence[ScopeAnswer]) -> None:
    """The pages of each file, with the globs that hold it."""
    rows = [
        (answer["file"], page["topic"], f"applies_to {page['glob']}", page.get("status", ""))
        for answer in answers
        for page in answer["pages"]
    ]
    if rows:
        print_table(("file", "page", "why", "status"), rows)
    for answer in answers:
        if not answer["pages"]:
            print_line((f"no page belongs to {answer['file']}", ""))


def print_info(info: InfoAnswer | ReplicaInfo, root: Path | str) -> None:
    """The state of the knowledge base as a table.

    Args:
        root: where it lies: a folder, or the address of a cluster.
    """
    base, index = info["knowledge_base"], info["index"]
    published = cast("ReplicaInfo", info).get("published", [])
    behind_seconds = cast("ReplicaInfo", info).get("behind_seconds")
    rows = [
        ("version", info["version"]),
        ("root", str(root)),
        ("status", info["status"]),
        *(("", reason) for reason in info["reasons"]),
        ("documents", _documents(base)),
        *((f"  {layer['name']}", _layer(layer)) for layer in base["layers"]),
        *((f"source {one['name']}", _source(one)) for one in base.get("sources", ())),
        ("index", index_line(index)),
        *((("", index["message"]),) if "message" in index else ()),
        *(
            row
            for one in published
            for row in (
                (one["source"], f"commit {_commit(one['commit'])}, since {one['since']}"),
                ("", f"generation {one['generation']}"),
            )
        ),
        *((("behind", _behind(behind_seconds)),) if behind_seconds is not None else ()),
        *((("meaning", meaning_line(info["meaning"])),) if "meaning" in info else ()),
        ("encoding", info["encoding"]),
        ("problems", _problems(info["problems"])),
        *(("", f"{problem['path']}: {problem['what']}") for problem in info["problems"]["first"]),
    ]
    print_rows(rows)


def _commit(name: str) -> str:
    """The beginning of a commit, and what its name ends with where the pages were not as it is."""
    number, hyphen, rest = name.partition("-")
    return f"{number[:12]}{hyphen}{rest}" or "unknown"


def _behind(seconds: float) -> str:
    return f"{seconds:.1f} s since these were known to be the last ones published"


def index_line(index: IndexInfo) -> str:
    """The state of the index in one line."""
    words = [index["state"]]
    if "progress" in index:
        words.append(f"{index['progress']:.0%} done")
    if "sections" in index and "where" in index:
        words.append(counted(index["sections"], "section"))
        words.append("kept on disk" if index["where"] == "disk" else f"in {index['where']}")
    return ", ".join(words)


def _with_vectors(meaning: MeaningInfo) -> str:
    of = counted(meaning["of"], "section")
    return f"{meaning['sections']:,} of {of} with vectors"


def meaning_line(meaning: MeaningInfo) -> str:
    """How far the base can be searched by meaning, in one line."""
    words = [meaning["model"], _with_vectors(meaning)]
    if "message" in meaning:
        words.append(meaning["message"])
    elif meaning["sections"] < meaning["of"]:
        words.append("a server makes the rest, or `sage embed`")
    return ", ".join(words)


def print_pages(answer: "PagesAnswer", offset: int) -> None:
    """Every page in a line, and how many there are."""
    told = any("source" in page for page in answer["pages"])
    rows = [
        (
            page["topic"],
            page["status"],
            page.get("type", ""),
            f"{page['tokens']:,}",
            page["updated"],
            *(_named_source(page) if told else ()),
        )
        for page in answer["pages"]
    ]
    if rows:
        heading = ("topic", "status", "type", "tokens", "updated")
        print_table((*heading, "source") if told else heading, rows)
    last = offset + len(rows)
    shown = f"{offset + 1:,} to {last:,} of " if len(rows) < answer["total"] and rows else ""
    print_line((f"{shown}{counted(answer['total'], 'page')}", "dim"))


def _named_source(page: "PageInfo") -> tuple[str]:
    over = page.get("overrides", ())
    return (page.get("source", OWN) + (f" (overrides {', '.join(over)})" if over else ""),)


def _amounts(fields: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in fields.items()) or "none"


def _layer(layer: LayerInfo) -> str:
    if "files" not in layer:
        return "not listed yet"
    documents = counted(layer["files"], "document")
    return f"{documents}, {counted(layer['tokens'], 'token')}" if "tokens" in layer else documents


def _source(source: SourceInfo) -> str:
    if "fault" in source:
        return f"not served: {source['fault']}"
    if "files" not in source:
        return "not listed yet"
    hidden = source.get("overridden", 0)
    words = f"{counted(source['files'], 'document')} in {', '.join(source['layers'])}"
    return f"{words}; {counted(hidden, 'page')} overridden" if hidden else words


def _problems(problems: ProblemsInfo) -> str:
    unread = problems.get("unread", 0)
    looked = f" so far; {counted(unread, 'page')} not looked at yet" if unread else ""
    return f"{problems['count']}{looked}"


def _documents(base: KnowledgeBaseInfo) -> str:
    if "content_files" not in base or "total_size_kb" not in base:
        return "not listed yet"
    return f"{base['content_files']:,} ({base['total_size_kb']:,} KB)"
