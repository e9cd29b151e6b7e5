"""The command that makes vectors, and the comparison of a search with and without them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sage.cli.options import Json, Quiet, Root, Verbose, opened, settings_at
from sage.cli.terminal import index_progress, print_json, print_line, print_table
from sage.errors import ConfigError, InvalidInput, counted

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase
    from sage.search.evaluation import Evaluation, Outcome
    from sage.semantic.nearness import Nearness

OFF = "search.semantic is off; set it to auto or on"
_NOWHERE = 10_000


def embed(
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Make the vectors of all sections now, for searches by meaning."""
    with opened(root) as knowledge:
        _embed_all(knowledge)
        info = knowledge.info()["meaning"]
    if as_json:
        print_json(info)
        return
    of = counted(info["of"], "section")
    print_line((f"{info['sections']:,} of {of} with vectors of {info['model']}", ""))


def kept_nearness(knowledge: "KnowledgeBase") -> "Nearness | None":
    """What is near in meaning by the vectors that are kept; None where only words are compared."""
    if knowledge.meaning is not None:
        knowledge.meaning.recall()
    return knowledge.nearness()


def compare(
    root: Path | None, asked: str, file: Path | None, limit: int, within: int
) -> dict[str, "Evaluation"]:
    """The golden queries of a base, searched with each of some values of `search.semantic`.

    Raises:
        InvalidInput: something else is to be compared.
    """
    from sage.knowledge import open_knowledge
    from sage.search.evaluation import evaluate, read_golden_file

    settings = settings_at(root)
    queries = read_golden_file(file or settings.knowledge_dir / "eval.yaml")
    found: dict[str, Evaluation] = {}
    for value in _values(asked):
        search = replace(settings.search, semantic=value)
        with closing(open_knowledge(replace(settings, search=search))) as knowledge:
            if value != "off":
                _embed_all(knowledge)
            found[value] = evaluate(queries, knowledge.topics_for, limit, within)
    return found


def print_comparison(found: dict[str, "Evaluation"]) -> None:
    """Both side by side, query by query, and the measures of each."""
    outcomes = zip(*(one.outcomes for one in found.values()), strict=True)
    rows = [
        (*(str(one.best or "-") for one in of_query), _change(of_query), of_query[0].query)
        for of_query in outcomes
    ]
    print_table((*found, "", "query"), rows)
    print_line(("", ""))
    for value, one in found.items():
        measures = f"hit rate {one.hit_rate:.3f}, MRR {one.mrr:.3f}, nDCG {one.ndcg:.3f}"
        print_line((f"{value:<5}", "bold"), (measures, ""))


def _change(outcomes: Sequence["Outcome"]) -> str:
    """Whether the last way finds a query's topic earlier or later than the first."""
    first, last = (one.best or _NOWHERE for one in (outcomes[0], outcomes[-1]))
    return "better" if last < first else "worse" if last > first else ""


def _values(asked: str) -> list[str]:
    values = [value.strip() for value in asked.split(",") if value.strip()]
    if len(values) < 2 or not set(values) <= {"off", "on"}:
        raise InvalidInput(f"--compare is {asked!r}; use off,on")
    return list(dict.fromkeys(values))


def _embed_all(knowledge: "KnowledgeBase") -> None:
    knowledge.warm(progress=index_progress())
    meaning = knowledge.meaning
    if meaning is None:
        from sage.semantic.models import model_named

        model_named(knowledge.settings.search.model)  # it says what is missing
        raise ConfigError(OFF)
    meaning.embed(index_progress())
