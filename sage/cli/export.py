"""`sage export`: the files that hosts read by themselves, written from the pages.

Imports stand inside the command: no other pays for it.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.options import Json, Quiet, Root, Verbose, complete_layers, opened
from sage.cli.terminal import print_json, print_line, print_note
from sage.errors import InvalidInput
from sage.values import ALL_LAYERS, OWN

if TYPE_CHECKING:
    from sage.export.files import Export, Exporter
    from sage.export.selection import ExportSelection


def _host_names() -> list[str]:
    from sage.export.hosts import HOST_NAMES

    return list(HOST_NAMES)


def export(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="HOST...",
            help="agents, claude, cursor, copilot or skills.",
            show_default="what is exported already",
            autocompletion=_host_names,
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER",
            help="Only pages of this layer; all for all.",
            autocompletion=complete_layers,
        ),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only pages with this tag.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Only pages that belong to this file or folder."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="The most tokens of what is always read.", show_default="2000"
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where skills go: .agents/skills or .claude/skills.",
            show_default=".agents/skills",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit with 1 when something would change."),
    ] = False,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Write the files that agents' hosts read, from the pages."""
    from sage.export.files import Exporter, known_host
    from sage.export.hosts import HOST_NAMES

    given = _Given(layer, tag, scope, budget)
    with opened(root) as knowledge:
        settings = knowledge.settings
        own = [one for one in knowledge.documents() if one.source == OWN]
        layers = settings.repository_layers
        exporter = Exporter(settings.root, layers, own, knowledge.counter)
        names = known_host(hosts or exporter.found())
        if not names:
            raise InvalidInput(f"nothing is exported yet; name one of {', '.join(HOST_NAMES)}")
        exports = [
            exporter.plan(name, given.selection(exporter, name, layers), _folder(folder))
            for name in names
        ]
        for one in () if check else exports:
            exporter.write(one)
    if as_json:
        print_json([_shown(one) for one in exports])
    else:
        _print(exports, check)
    if check and any(one.changes for one in exports):
        raise typer.Exit(1)


class _Given:
    """What the command line chose; what it left open is as it was the last time."""

    def __init__(
        self,
        layers: list[str] | None,
        tags: list[str] | None,
        scope: str | None,
        budget: int | None,
    ) -> None:
        self._layers, self._tags, self._scope, self._budget = layers, tags, scope, budget

    def selection(
        self, exporter: "Exporter", name: str, known: tuple[str, ...]
    ) -> "ExportSelection":
        """The selection for one host.

        Raises:
            InvalidInput: a layer does not exist, or the budget is out of range.
        """
        from sage.export.selection import ExportSelection, selection_of

        chosen = (self._layers, self._tags, self._scope, self._budget)
        before = exporter.recorded(name) if None in chosen else None
        before = before or ExportSelection()
        layers = before.layers if self._layers is None else self._layers
        return selection_of(
            [one for one in layers if one != ALL_LAYERS],
            before.tags if self._tags is None else self._tags,
            before.scope if self._scope is None else self._scope,
            before.budget_tokens if self._budget is None else self._budget,
            known,
        )


def _folder(folder: str | None) -> str:
    from sage.export.hosts import SKILL_FOLDERS

    given = (folder or "").strip("/")
    if given and given not in SKILL_FOLDERS:
        raise InvalidInput(f"skills cannot go to {folder!r}; use {' or '.join(SKILL_FOLDERS)}")
    return given


def _shown(export: "Export") -> dict[str, object]:
    return {
        "host": export.host,
        "files": list(export.paths),
        "changes": [{"path": one.path, "action": one.action} for one in export.changes],
    }


def _print(exports: list["Export"], check: bool) -> None:
    styles = {"written": "green", "updated": "green", "removed": "yellow"}
    for export in exports:
        for change in export.changes:
            action = f"not {change.action}" if check else change.action
            print_line((f"{action:<12}", styles[change.action]), (change.path, ""), indent=12)
        if not export.changes:
            print_line((f"{'up to date':<12}", "dim"), (export.host, ""), indent=12)
        if not export.paths:
            print_note(f"{export.host}: no page has a summary of its own, so there is no skill")
