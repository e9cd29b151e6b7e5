"""The tools as data: the words a model reads, what each takes, what each gives.

No protocol here: the server turns a tool into MCP, the reference page is printed from it.
"""

from dataclasses import dataclass

from sage.answers import ContextAnswer, DraftAnswer, InfoAnswer, KnowledgeAnswer, SearchAnswer
from sage.documents.front_matter import STATUSES, TYPES
from sage.server.schemas import DEPTH
from sage.values import (
    ALL_LAYERS,
    DEFAULT_ANSWER,
    DEFAULT_BUDGET,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
    DEFAULT_TIMEOUT_MS,
    MAX_ANSWER,
    MAX_BUDGET,
    MAX_CURRENT_FILES,
    MAX_FILTERS,
    MAX_LANGUAGE,
    MAX_OFFSET,
    MAX_RESULTS,
    MAX_TASK,
    MAX_TOKENS,
    MAX_TOPIC,
    MIN_ANSWER,
    SEARCH_ORDERS,
    Argument,
)

INFO = "sage_info"
DRAFT = "sage_draft_note"
_MAX_NOTE = 20_000
_MAX_LINE = 200


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, its words, its arguments, its answer and what it does."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    answer: type
    method: str
    """The method of the knowledge base that answers; it takes the arguments by name. Empty where
    the server makes the answer from what the knowledge base says."""
    described: int = DEPTH
    """How many levels of the answer its schema describes."""


def all_tools(layers: tuple[str, ...], task_types: tuple[str, ...]) -> tuple[Tool, ...]:
    """The tools over these layers and task types that every server has."""
    choices = (*layers, ALL_LAYERS)
    return (_get_knowledge(choices), _search(choices), _get_context(task_types), _info())


def draft_tool() -> Tool:
    """The tool that a server has only where its operator wants it."""
    return Tool(
        DRAFT,
        "Draft a note as text",
        _DRAFT,
        (
            Argument("text", "string", "What was learned, with the reason.", max_length=_MAX_NOTE),
            Argument("type", "string", "Kind of note.", default="discovery", choices=TYPES),
            _line("title", "Its title; else its first sentence."),
            Argument(
                "files", "array", "Paths or globs it is about.", default=None, maximum=MAX_FILTERS
            ),
            Argument("tags", "array", "Tags.", default=None, maximum=MAX_FILTERS),
            _line("source", "Where it was learned: a link, an incident."),
            _line("owner", "Who looks after it."),
            _line("review_by", "Day of the next review, as 2027-01-31."),
        ),
        DraftAnswer,
        "",
    )


def _line(name: str, doc: str) -> Argument:
    return Argument(name, "string", doc, default=None, max_length=_MAX_LINE)


def _get_knowledge(choices: tuple[str, ...]) -> Tool:
    arguments = (
        Argument("layer", "string", "Layer to read, or all.", default=ALL_LAYERS, choices=choices),
        Argument(
            "topic",
            "string",
            "Page, folder or heading: testing, engineering/testing, testing#fixtures.",
            default=None,
            max_length=MAX_TOPIC,
        ),
        Argument(
            "timeout_ms",
            "integer",
            "Answer within this time, with what is loaded by then.",
            default=DEFAULT_TIMEOUT_MS,
            minimum=1,
        ),
        Argument(
            "max_tokens",
            "integer",
            "Longest content, in tokens.",
            default=DEFAULT_MAX_TOKENS,
            minimum=1,
            maximum=MAX_TOKENS,
        ),
    )
    return Tool(
        "sage_get_knowledge",
        "Read team knowledge",
        _GET_KNOWLEDGE,
        arguments,
        KnowledgeAnswer,
        "get",
    )


def _search(choices: tuple[str, ...]) -> Tool:
    arguments = (
        Argument("query", "string", "Words, a question, an error text or a name in code."),
        Argument(
            "limit",
            "integer",
            "Most results to return.",
            default=DEFAULT_RESULTS,
            minimum=1,
            maximum=MAX_RESULTS,
        ),
        Argument(
            "layer", "string", "Layer to search, or all.", default=ALL_LAYERS, choices=choices
        ),
        Argument(
            "types", "array", f"Any of {', '.join(TYPES)}.", default=None, maximum=MAX_FILTERS
        ),
        Argument("tags", "array", "Any of these tags.", default=None, maximum=MAX_FILTERS),
        Argument(
            "status", "string", "Only pages with this status.", default=None, choices=STATUSES
        ),
        Argument(
            "source",
            "string",
            "Only pages from this source.",
            default=None,
            max_length=MAX_LANGUAGE,
        ),
        Argument(
            "sort", "string", "Order; date is newest first.", default=None, choices=SEARCH_ORDERS
        ),
        Argument(
            "offset",
            "integer",
            "Results to skip: a next_offset.",
            default=0,
            minimum=0,
            maximum=MAX_OFFSET,
        ),
        Argument(
            "max_tokens",
            "integer",
            "Longest answer, in tokens.",
            default=DEFAULT_ANSWER,
            minimum=MIN_ANSWER,
            maximum=MAX_ANSWER,
        ),
    )
    return Tool("sage_search", "Search team knowledge", _SEARCH, arguments, SearchAnswer, "search")


def _get_context(task_types: tuple[str, ...]) -> Tool:
    arguments = (
        Argument("task_type", "string", "Kind of work ahead.", choices=task_types),
        Argument(
            "language",
            "string",
            "Programming language of the work; else the repository's own.",
            default=None,
            max_length=MAX_LANGUAGE,
        ),
        Argument(
            "token_budget",
            "integer",
            "Most tokens of the whole answer.",
            default=DEFAULT_BUDGET,
            minimum=1,
            maximum=MAX_BUDGET,
        ),
        Argument(
            "task",
            "string",
            "What is being done, in a sentence or two.",
            default=None,
            max_length=MAX_TASK,
        ),
        Argument(
            "current_files",
            "array",
            "Paths of the files being worked on.",
            default=None,
            maximum=MAX_CURRENT_FILES,
        ),
    )
    return Tool(
        "sage_get_context",
        "Get context for a task",
        _GET_CONTEXT,
        arguments,
        ContextAnswer,
        "context",
    )


def _info() -> Tool:
    return Tool(INFO, "Knowledge base status", _INFO, (), InfoAnswer, "info", described=1)


_GET_KNOWLEDGE = """\
Read the team's knowledge in full: a page, one heading of it, a folder, a whole layer. Use it \
when you know where to look: a topic from sage_search, a link in a page. To find a page by its \
words call sage_search; to prepare for a task, sage_get_context.

`topic` is forgiving: path, name or title, with or without .md; name#heading reads one \
section; a link copied from a page works. Without a topic the whole layer is read.

Returns `content` (markdown, each document under its path and status, in reading order) and \
`metadata`. Beyond max_tokens `complete` is false: whole documents come first, a long page as its \
outline and beginning, `omitted` lists the rest, and the last line of `content` is the call that \
reads on. An unknown topic answers NOT_FOUND with the nearest."""

_SEARCH = """\
Find what this team has written down: conventions, decisions, how-tos, known bugs. Call it \
before you guess how something is done here, and when a name, an error or a tool is new to you.

Ask in plain words; paste names, errors and logs as they are. "Quotes" keep words together, \
-word leaves pages out. An empty query lists what the filters leave.

`found` says whether it is here: yes, partly, no (then only the nearest follow); `missing` is \
what no page holds. Results come best first, within max_tokens in all: `whole` sections that \
need no second call, then matching sentences, then only topics: sage_get_knowledge(topic=…) \
reads one for its `tokens`. Mind `status` and `superseded_by`."""

_GET_CONTEXT = """\
Get the knowledge to read before you start a task, chosen for it and exactly within a token \
budget. Call it once at the start, with `task` in your own words and the `current_files`: they \
decide what is chosen.

Returns `context` (markdown: the team's principles, then what is most specific to the task, \
every section under its source), the exact `token_count`, and `sources` with the reason for \
each. `omitted` names what did not fit: read it with sage_get_knowledge, or call again with a \
larger token_budget. Follow the context over your own habits; where it is silent, ask \
sage_search."""

_INFO = """\
See what the knowledge base holds and whether it is healthy. Call it when a search finds nothing \
you expected, when an answer looks incomplete or out of date, or to learn how large the layers \
are.

Returns `status` with `reasons` when something is not served, documents and tokens per layer, \
the state of cache and index, and the first problems in files."""

_DRAFT = """\
Get a note on what was learned as a ready page, with the path it belongs at. Nothing is written: \
you or the user put `page` at `path` and commit it, and people review it. Use it for a gotcha, the \
cause of a bug or a decision that the next one needs and that no page says yet.

Returns `page`, `path`, `topic`, the note's `id`, and in `known` what the base says already: \
sections that are alike, pages on the same files, sentences that may disagree. Where one says the \
same, correct that page instead. The page is a draft until somebody accepts it."""
