"""Which generations a base has in its cluster: what the alias knows, and what is left over."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sage.cluster.connection import Connection, NotThere
from sage.cluster.schema import MAPPING, Name, parse_name, pattern
from sage.deadline import Deadline
from sage.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Meta:
    """What a generation says of itself."""

    source: str
    generation: int
    """One more than that of the generation that it was copied from."""
    key: str
    """Of this generation alone: another one may get the same name when this one is gone."""
    ancestors: Sequence[str] = ()
    """The keys of those that it descends from by copying, the nearest first: of these alone is
    known that what has a higher number than theirs is all that changed since."""
    commit: str = ""
    published: float = 0.0
    """When the alias moved to it, in seconds since 1970; 0 while it is being written."""
    documents: int = 0
    sections: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What replicas need of the settings of the repository."""
    retired: float = 0.0
    """When the alias left it."""
    model: str = ""
    """What made the vectors of its pages; empty without any."""

    def to_json(self) -> dict[str, Any]:
        # As text: a mapping's own objects would be merged with those before.
        return {"sage": json.dumps(asdict(self), ensure_ascii=False)}


def meta_from(mapping: Mapping[str, Any]) -> Meta:
    """What the mapping of an index says."""
    return Meta(**json.loads(mapping["mappings"]["_meta"]["sage"]))


def served(connection: Connection, deadline: Deadline) -> tuple[str, ...]:
    """The indexes that the alias knows, in order."""
    base = connection.options.base
    try:
        return tuple(sorted(connection.get(f"/_alias/{base}", deadline)))
    except NotThere:
        return ()


def metas(
    connection: Connection, names: Iterable[str], deadline: Deadline
) -> Iterator[tuple[str, Meta]]:
    """What each of some indexes says of itself."""
    for name in names:
        answer = connection.get(f"/{name}/_mapping", deadline)
        parts = parse_name(name)
        if parts is None or parts.mapping != MAPPING:
            raise Unavailable(
                f"{name} was published by another version of SAGE; publish again with this one"
            )
        yield name, meta_from(answer[name])


def all_of(connection: Connection, source: str, deadline: Deadline) -> dict[str, Meta]:
    """Every generation of a source that lies in the cluster, finished or not."""
    base = connection.options.base
    found = connection.get(
        f"/{pattern(base, source)}/_mapping?ignore_unavailable=true&allow_no_indices=true", deadline
    )
    ours = {name: parse_name(name) for name in found}
    return {
        name: meta_from(found[name])
        for name, parts in ours.items()
        if parts is not None and (parts.base, parts.source) == (base, source)
    }


def write_meta(connection: Connection, name: str, meta: Meta, deadline: Deadline) -> None:
    """Let an index say something else of itself."""
    connection.request("PUT", f"/{name}/_mapping", {"_meta": meta.to_json()}, deadline)


def move_alias(connection: Connection, new: Name, old: Iterable[str], deadline: Deadline) -> None:
    """Serve a generation in place of others, all at once."""
    alias = connection.options.base
    actions: list[dict[str, Any]] = [{"add": {"index": str(new), "alias": alias}}]
    actions += [{"remove": {"index": name, "alias": alias}} for name in old]
    connection.request("POST", "/_aliases", {"actions": actions}, deadline)


def delete(connection: Connection, name: str, deadline: Deadline) -> None:
    """Remove an index; that it is gone already is as good."""
    try:
        connection.request("DELETE", f"/{name}", None, deadline)
    except NotThere:
        return
