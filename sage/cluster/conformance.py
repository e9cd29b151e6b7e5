"""What every engine must do, whatever keeps its index: a suite that any of them can be put through.

An engine is tried as a whole knowledge base of our own pages: give a function that opens one over
them, and call `check_engine`. What an engine gets wrong is said in the words of `Failed`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from sage.deadline import Deadline
from sage.errors import InvalidInput, NotFound, TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.values import ALL_LAYERS, OWN

Pages = Mapping[str, str]
"""The text of pages by their path below the folder of layers."""
Open = Callable[[Pages, Collection[str] | None], KnowledgeBase]
"""Opens a base of these pages; with layers, for somebody who may see no others. One that was opened
before holds these pages, too, from then on."""

PAGES: Pages = {
    "core/principles.md": "# Principles\n\nSmall changes. Review every change before a release.\n",
    "guidelines/errors.md": (
        "---\ntags: [reliability]\ntype: rule\n---\n# Error handling\n\nRaise typed errors.\n\n"
        "## Retries\n\nRetry a failed request three times, then give up.\n\n"
        "## Timeouts\n\nEvery request has a timeout of ten seconds.\n"
    ),
    "guidelines/naming.md": (
        "# Naming\n\nUse `snake_case` for functions.\n\n"
        "## Databases\n\nA database table is plural.\n"
    ),
    "practices/deploy.md": (
        "# Deployment\n\nDeploy behind a flag.\n\n## Rollback\n\n"
        "Roll back with `deployctl undo` when errors rise.\n"
    ),
    "practices/old-deploy.md": (
        "---\nstatus: superseded\nsuperseded_by: deploy.md\n---\n# Old deployment\n\n"
        "Deploy by hand with rollback notes.\n"
    ),
    "practices/secret.md": "# Zanzibar project\n\nThe zanzibar launch needs a rollback plan.\n",
    "practices/chinese.md": "# 数据库\n\n数据库连接需要超时。\n",
}
"""Pages that together hold what engines get wrong."""

FILTERED: Pages = {
    "core/one.md": "---\ntags: [t4, Mixed1]\ntype: Bug Fix\n---\n# One\n\nTest the index change.\n",
    "core/two.md": "---\ntags: [mixed1]\nstatus: Draft\n---\n# Two\n\nTest a change of it.\n",
    "core/three.md": "---\nsuperseded_by: two.md\n---\n# Three\n\nTest the old server index.\n",
    "guidelines/four.md": "---\nlanguage: Go\ntype: bug_fix\n---\n# Four\n\nTest getUserName.\n",
    "guidelines/five.md": "---\ntags: [\u00dcber]\n---\n# Five\n\nA test without user or name.\n",
}
"""Pages that differ in what filters look at."""

FILTERS: Sequence[Mapping[str, Any]] = (
    {"tags": ["Mixed1"]},
    {"tags": ["mixed1", "T4"]},
    {"tags": ["\u00fcber"]},
    {"tags": ["absent"]},
    {"types": ["BUG-FIX"]},
    {"status": "Draft"},
    {"status": "superseded"},
    {"source": OWN},
)
RESTRICTED = (
    "tag:MIXED1 test",
    "tag:mixed1",
    "tag:\u00dcber test",
    "type:Bug-Fix test",
    "status:Superseded test",
    "status:draft",
    f"source:{OWN.upper()} test",
    "lang:go test",
    '"index change"',
    '"change of it" test',
    '"test index" test',
    '"the" test',
    '"without" name',
    '"the of" getUserName',
    "test -server",
    "test -getUserName",
    "layer:core -server",
)
"""Queries with conditions."""

_DATED = "---\nlast_updated: 2024-01-0{}\ntype: plan\n---\n"
_UNDATED = "---\ntags: [undated]\n---\n"
MANY: Pages = {
    f"practices/page{number:03}.md": (_DATED.format(number % 3 + 1) if number % 2 else _UNDATED)
    + f"# Page {number}\n\n{'samovar ' * (number % 7 + 1)}{'teapot ' * (number % 5)}{number}\n"
    for number in range(260)
}
"""More pages than an engine that chooses some of them by itself may stop at."""

LISTS: Sequence[Mapping[str, Any]] = (
    {"query": "", "offset": 245},
    {"query": "", "sort": "date", "types": ["plan"]},
    {"query": "", "sort": "date", "tags": ["undated"], "offset": 20},
    {"query": "samovar", "offset": 195, "limit": 5},
    {"query": "samovar teapot", "offset": 245},
    {"query": "samovar", "sort": "path", "offset": 198},
    {"query": "teapot", "sort": "date", "types": ["plan"], "offset": 90},
    {"query": '"teapot 17"', "sort": "date"},
    {"query": "samovar -teapot", "offset": 40},
)
"""Parts of lists."""

_ENDING = "\n---\n\n*Owner: the wolverine desk*\n"
ALIKE: Pages = {
    **{f"core/note{number}.md": f"# Note {number}\n\nNothing.\n" for number in range(37)},
    **{f"core/owned{number}.md": f"# Owned {number}\n\nText.\n{_ENDING}" for number in range(2)},
    **{f"guidelines/rule{number}.md": f"# Rule {number}\n\nA.\n{_ENDING}" for number in range(4)},
    **{f"practices/way{number}.md": f"# Way {number}\n\nB.\n{_ENDING}" for number in range(3)},
}
"""Pages with the same ending, which only in one layer are enough for it to say nothing."""

QUERIES = (
    "rollback",
    "how do we retry a failed request",
    "databse table",
    "snake_case functions",
    '"give up"',
    "deploy -hand",
    "tag:reliability errors",
    "type:rule",
    "数据库",
    "nothing holds xylophone",
    "deployctl undo",
    "timeouts",
    "layer:core",
)


class Failed(AssertionError):
    """What an engine does otherwise than it must."""


def check_engine(open_base: Open, reference: Open) -> None:
    """Put an engine through everything.

    Args:
        reference: opens the same pages with an engine that is known to be right.

    Raises:
        Failed: with what is wrong.
    """
    for check in checks():
        check(open_base, reference)


def checks() -> Iterator[Callable[[Open, Open], None]]:
    """The single checks, to be run and named one by one."""
    yield answers_are_those_of_the_reference
    yield conditions_mean_the_same
    yield every_part_of_a_list_is_there
    yield only_some_layers_are_searched
    yield what_may_not_be_seen_leaves_no_trace
    yield endings_are_left_out_by_layer
    yield words_are_counted
    yield pages_and_sections_are_loaded
    yield headings_are_found_whatever_was_read
    yield it_follows_its_documents
    yield it_follows_its_documents_back_and_on
    yield sources_are_kept_apart
    yield it_keeps_a_deadline
    yield it_says_whether_it_is_ready


def answers_are_those_of_the_reference(open_base: Open, reference: Open) -> None:
    """The same results in the same order, totals, verdicts, notes and contexts."""
    ours, theirs = open_base(PAGES, None), reference(PAGES, None)
    for query in QUERIES:
        _same(_shown(theirs, query), _shown(ours, query), f"search {query!r}")
    for task in ("retry a request", "deploy with a flag", ""):
        want = theirs.context("coding", task=task)["context"]
        _same(want, ours.context("coding", task=task)["context"], f"context for {task!r}")


def conditions_mean_the_same(open_base: Open, reference: Open) -> None:
    """Filters, phrases and excluded words leave the same pages, however they are written."""
    ours, theirs = open_base(FILTERED, None), reference(FILTERED, None)
    for options in FILTERS:
        for query in ("", "test", "nowhere"):
            want, found = _shown(theirs, query, **options), _shown(ours, query, **options)
            _same(want, found, f"search {query!r} with {options}")
    for query in RESTRICTED:
        _same(_shown(theirs, query), _shown(ours, query), f"search {query!r}")


def every_part_of_a_list_is_there(open_base: Open, reference: Open) -> None:
    """A list can be read to its end, in every order."""
    ours, theirs = open_base(MANY, None), reference(MANY, None)
    for options in LISTS:
        _same(_shown(theirs, **options), _shown(ours, **options), f"search with {options}")


def only_some_layers_are_searched(open_base: Open, reference: Open) -> None:
    """A layer that was asked for is a filter of the query, not of its results."""
    del reference
    base = open_base(PAGES, None)
    found = base.search("rollback deploy errors", layer="guidelines", limit=1)
    _same(["guidelines"], sorted({_layer(one) for one in found["results"]}), "layers of results")


def what_may_not_be_seen_leaves_no_trace(open_base: Open, reference: Open) -> None:
    """Totals, corrections, missing words and scores come from the layers that may be seen."""
    scope = ("core", "guidelines")
    seen = {path: text for path, text in PAGES.items() if path.split("/")[0] in scope}
    narrow, alone = open_base(PAGES, scope), reference(seen, scope)
    for query in (*QUERIES, "zanzibar", "zanzibr", "launch plan"):
        _same(_shown(alone, query), _shown(narrow, query), f"search {query!r} in {scope}")
    for topic in ("practices/secret", "secret", "Zanzibar project", "guidelines/errors"):
        _same(_read(alone, topic), _read(narrow, topic), f"{topic!r} in {scope}")


def endings_are_left_out_by_layer(open_base: Open, reference: Open) -> None:
    """Whether pages end alike is asked of each layer by itself, whatever else is there."""
    for scope in (("core",), ("guidelines",), ("practices",), ("core", "practices"), None):
        visible = scope or ("core", "guidelines", "practices")
        seen = {path: text for path, text in ALIKE.items() if path.split("/")[0] in visible}
        narrow, alone = open_base(ALIKE, scope), reference(seen, scope)
        for query in ("wolverine", "owner of a rule", "way", "note wolverine"):
            _same(_shown(alone, query), _shown(narrow, query), f"search {query!r} in {scope}")
        want = alone.context("coding", task="wolverine desk")["context"]
        found = narrow.context("coding", task="wolverine desk")["context"]
        _same(want, found, f"context in {scope}")


def words_are_counted(open_base: Open, reference: Open) -> None:
    """Each word is held by as many documents as in the reference."""
    ours = open_base(PAGES, None).snapshot(Deadline()).searcher.ranker
    theirs = reference(PAGES, None).snapshot(Deadline()).searcher.ranker
    for form in ("rollback", "request", "errors", "error", "数据", "snakecase_", "absent"):
        _same(theirs.frequency(form), ours.frequency(form), f"documents with {form!r}")


def pages_and_sections_are_loaded(open_base: Open, reference: Open) -> None:
    """What was indexed is read back as it was written."""
    ours, theirs = open_base(PAGES, None), reference(PAGES, None)
    for topic in ("guidelines/errors", "guidelines/errors#retries", "practices/chinese"):
        want = theirs.get(ALL_LAYERS, topic)["content"]
        _same(want, ours.get(ALL_LAYERS, topic)["content"], f"content of {topic}")
    _same(theirs.topics(), ours.topics(), "topics")


def it_follows_its_documents(open_base: Open, reference: Open) -> None:
    """Brought to other documents, it knows those and no others."""
    changed = {**PAGES, "core/principles.md": "# Principles\n\nOnly marmalade matters.\n"}
    del changed["practices/secret.md"]
    open_base(PAGES, None)
    ours, theirs = open_base(changed, None), reference(changed, None)
    for query in ("marmalade", "review", "zanzibar", *QUERIES):
        _same(_shown(theirs, query), _shown(ours, query), f"search {query!r} after a change")


def headings_are_found_whatever_was_read(open_base: Open, reference: Open) -> None:
    """A heading names the sections that have it, and the nearest where none has."""
    for topic in ("#retries", "## Rollback", "{#timeouts}", "#rolback", "retrys", "#nowhere"):
        want = _read(reference(PAGES, None), topic)
        _same(want, _read(open_base(PAGES, None), topic), f"{topic!r}")


def it_follows_its_documents_back_and_on(open_base: Open, reference: Open) -> None:
    """Content that was there before, and what comes after it, is as right as anything new."""
    one = {**PAGES, "core/one.md": "# One\n\nThe marmalade is first.\n"}
    two = {**PAGES, "core/two.md": "# Two\n\nThe quince is second.\n"}
    both = {**two, "core/three.md": "# Three\n\nThe damson is third.\n"}
    first = open_base(PAGES, None)
    for pages in (one, PAGES, two, both, PAGES):
        for ours in (open_base(pages, None), first):
            theirs = reference(pages, None)
            _same(theirs.topics(), ours.topics(), "topics after a change and back")
            for query in ("marmalade", "quince", "damson", "rollback"):
                _same(_shown(theirs, query), _shown(ours, query), f"search {query!r} after that")


def sources_are_kept_apart(open_base: Open, reference: Open) -> None:
    """A search in a source finds its pages; one that is not there is refused by name."""
    ours, theirs = open_base(PAGES, None), reference(PAGES, None)
    for source in (*(one.name for one in theirs.settings.served), "nowhere"):
        want, found = _in_source(theirs, source), _in_source(ours, source)
        _same(want, found, f"search in the source {source!r}")


def it_keeps_a_deadline(open_base: Open, reference: Open) -> None:
    """Time that is over gives no answer as if it was whole, and the next call is answered."""
    base = open_base(PAGES, None)
    over = Deadline()
    over.cancel()
    try:
        complete = base.search("rollback deploy", deadline=over).get("complete", True)
    except (TimeoutExceeded, Unavailable):
        complete = False
    _same(False, complete, "whether an answer after its deadline says that it is whole")
    theirs = reference(PAGES, None)
    for query in ("rollback deploy", "rollback"):
        _same(_shown(theirs, query), _shown(base, query), f"search {query!r} after a deadline")


def it_says_whether_it_is_ready(open_base: Open, reference: Open) -> None:
    """Its state names as many documents and sections as there are."""
    ours, theirs = open_base(PAGES, None), reference(PAGES, None)
    for base in (ours, theirs):
        base.warm()
    want, found = theirs.info()["index"], ours.info()["index"]
    for name in ("state", "documents", "sections"):
        _same(want.get(name), found.get(name), f"{name} of the index")
    ours.close()


def _shown(base: KnowledgeBase, query: str, **options: Any) -> dict[str, Any]:
    """An answer without what differs from run to run."""
    answer: dict[str, Any] = dict(base.search(query, **options))
    answer.pop("query_time_ms")
    answer["results"] = [
        {**result, "score": round(result["score"], 2)} for result in answer["results"]
    ]
    return answer


def _in_source(base: KnowledgeBase, source: str) -> object:
    """What a search in a source finds, or why it is refused."""
    try:
        answer = base.search("rollback deploy errors", source=source)
    except InvalidInput as error:
        return str(error)
    return answer["total"], [one["topic"] for one in answer["results"]]


def _read(base: KnowledgeBase, topic: str) -> str:
    """What a topic holds, or why it holds nothing."""
    try:
        return base.get(ALL_LAYERS, topic)["content"]
    except NotFound as error:
        return str(error)


def _layer(result: Mapping[str, Any]) -> str:
    return str(result["topic"]).split("/", maxsplit=1)[0]


def _same(want: object, found: object, what: str) -> None:
    if want != found:
        raise Failed(f"{what}: {found!r} in place of {want!r}")
