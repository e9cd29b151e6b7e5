"""The four tools as data: the words a model reads, what each takes, what each gives.

No protocol here: the server turns a tool into MCP, the reference page is printed from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sage.answers import ContextAnswer, InfoAnswer, KnowledgeAnswer, SearchAnswer
from sage.arguments import Argument
from sage.bounds import (
    ALL_LAYERS,
    DEFAULT_BUDGET,
    DEFAULT_LANGUAGE,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
    MAX_BUDGET,
    MAX_CURRENT_FILES,
    MAX_RESULTS,
    MAX_TASK,
    MAX_TOKENS,
    MAX_TOPIC,
)
from sage.deadline import Deadline

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase

INFO = "sage_info"

Arguments = Mapping[str, Any]
Call = Callable[["KnowledgeBase", Arguments, Deadline], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, its words, its arguments, its answer and what it does."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    answer: type
    call: Call


def all_tools(layers: tuple[str, ...], task_types: tuple[str, ...]) -> tuple[Tool, ...]:
    """The tools over these layers and task types."""
    choices = (*layers, ALL_LAYERS)
    return (_get_knowledge(choices), _search(choices), _get_context(task_types), _info())


def _get_knowledge(choices: tuple[str, ...]) -> Tool:
    arguments = (
        Argument("layer", "string", "Layer to read, or all.", choices=choices),
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
            default=2000,
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
        _call_get_knowledge,
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
    )
    return Tool(
        "sage_search", "Search team knowledge", _SEARCH, arguments, SearchAnswer, _call_search
    )


def _get_context(task_types: tuple[str, ...]) -> Tool:
    arguments = (
        Argument("task_type", "string", "Kind of work ahead.", choices=task_types),
        Argument(
            "language",
            "string",
            "Programming language of the work.",
            default=DEFAULT_LANGUAGE,
            max_length=50,
        ),
        Argument(
            "token_budget",
            "integer",
            "Longest context, in tokens.",
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
        _call_get_context,
    )


def _info() -> Tool:
    return Tool(INFO, "Knowledge base status", _INFO, (), InfoAnswer, _call_info)


def _call_get_knowledge(
    knowledge: "KnowledgeBase", arguments: Arguments, deadline: Deadline
) -> Mapping[str, Any]:
    return knowledge.get(
        arguments["layer"],
        arguments["topic"],
        max_tokens=arguments["max_tokens"],
        deadline=deadline,
    )


def _call_search(
    knowledge: "KnowledgeBase", arguments: Arguments, deadline: Deadline
) -> Mapping[str, Any]:
    return knowledge.search(
        arguments["query"], limit=arguments["limit"], layer=arguments["layer"], deadline=deadline
    )


def _call_get_context(
    knowledge: "KnowledgeBase", arguments: Arguments, deadline: Deadline
) -> Mapping[str, Any]:
    return knowledge.context(
        arguments["task_type"],
        language=arguments["language"],
        token_budget=arguments["token_budget"],
        task=arguments["task"],
        current_files=arguments["current_files"] or (),
        deadline=deadline,
    )


def _call_info(knowledge: "KnowledgeBase", _: Arguments, deadline: Deadline) -> Mapping[str, Any]:
    return knowledge.info(deadline)


_GET_KNOWLEDGE = """\
Read the team's knowledge in full: a page, one heading of it, a folder, or a whole layer. Use it \
when you know where to look: a topic from sage_search, a page that another names, a layer to get \
acquainted with. To find a page by what it says call sage_search; to prepare for a task, \
sage_get_context.

`topic` is forgiving: path, file name or title, in any case, with or without .md; name#heading \
reads one section. Without a topic the whole layer is read.

Returns `content` (markdown, each document under its path, in reading order) and `metadata`. \
When it does not all fit into max_tokens, whole documents come first, `metadata.complete` is \
false, `metadata.omitted` lists the rest (topic, title, tokens), and the last line of `content` \
is the call that reads on. An unknown topic answers NOT_FOUND with the nearest topics."""

_SEARCH = """\
Find what this team has written down: conventions, decisions, how-tos, known bugs. Call it \
before you guess how something is done here, and when a name, an error message or a tool is new \
to you.

Ask in plain words or a whole question; identifiers, error texts and any language work. \
"Quotes" keep words together, -word leaves pages out; tag:, type: and lang: narrow.

Returns the best section of each matching document, best first: where it is, a `snippet` around \
the match, a `score` from 0 to 1, the `tokens` it takes to read. `total` counts all matches; \
`note` says when a word was corrected or left out. A snippet is not the page: before you rely \
on it, read it with sage_get_knowledge(layer="all", topic=<topic of the result>)."""

_GET_CONTEXT = """\
Get the knowledge to read before you start a task, chosen for it and exactly within a token \
budget. Call it once at the start of the work, with `task` in your own words and the \
`current_files`: they decide what is chosen.

Returns `context` (markdown: the team's principles, then what is most specific to the task, \
every section under its source so that you can cite it), the exact `token_count`, and `sources` \
with the reason for each. `omitted` names what did not fit: read it with sage_get_knowledge, or \
call again with a larger token_budget. Follow the context over your own habits; where it is \
silent, ask sage_search."""

_INFO = """\
See what the knowledge base holds and whether it is healthy. Call it when a search finds nothing \
you expected, when an answer looks incomplete or out of date, or to learn how large the layers \
are before you read one whole.

Returns `status` with `reasons` when something is not served, documents and tokens per layer, \
the state of cache and search index, and the first problems found in files."""
