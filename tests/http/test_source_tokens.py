"""What a token for some sources and layers sees: every pair of them, through every request.

Each page holds a word of its own. What a token may read says its word somewhere, and nothing that
it may not read ever does.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sage.access.token_file import TokenFile
from tests.httpkit import NEW, Client, serving

# By source, layer and page, the word that only this page holds.
PAGES = {
    ("own", "core", "principles"): "aardvark",
    ("own", "practices", "testing"): "babirusa",
    ("company", "core", "ethics"): "capybara",
    ("company", "practices", "testing"): "dugong",
    ("company", "practices", "travel"): "echidna",
    ("mapped", "core", "names"): "fossa",
}
FOLDERS = {"own": "repo", "company": "company", "mapped": "mapped"}
HIDDEN = {("company", "practices", "testing"): "own"}
"""Pages whose topic a nearer source has too: they are seen only where that one is not."""
LAYERS: tuple[tuple[str, ...] | None, ...] = (None, ("core",), ("practices",))
SOURCES: tuple[tuple[str, ...] | None, ...] = (
    None,
    ("own",),
    ("company",),
    ("mapped",),
    ("company", "mapped"),
)
SCOPES = list(product(LAYERS, SOURCES))


@dataclass(frozen=True)
class Team:
    """A server of three sources, and the file of its tokens."""

    client: Client
    tokens: TokenFile


def write(folder: Path) -> Mapping[str, str]:
    for (source, layer, name), word in PAGES.items():
        inner = f"docs/{layer}" if source == "mapped" else f".knowledge/{layer}"
        path = folder / FOLDERS[source] / inner / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nsummary: When the {word} comes.\ntags: [{word}-tag]\n---\n"
        path.write_text(f"{head}# About {word}\n\nThe {word} reads what the team writes.\n")
    (folder / "mapped" / "sage.yaml").write_text("layers: {core: docs/core}\n")
    named = [f"{name}={folder / FOLDERS[name]}" for name in ("company", "mapped")]
    return {"SAGE_SOURCES": ",".join(named), "SAGE_NOTES_DRAFT_TOOL": "true"}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("sources")
    environment = write(folder)
    tokens = TokenFile(folder / "private" / "tokens.json")
    tokens.create("first")
    with serving(
        folder / "repo", environment=environment, tokens=tokens.path, require_token=True
    ) as client:
        yield Team(client, tokens)


def seen_words(layers: tuple[str, ...] | None, sources: tuple[str, ...] | None) -> set[str]:
    """The words that a token may read."""
    return {
        word
        for (source, layer, name), word in PAGES.items()
        if (layers is None or layer in layers)
        and (sources is None or source in sources)
        and not (
            (nearer := HIDDEN.get((source, layer, name))) and (sources is None or nearer in sources)
        )
    }


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for listing in ("tools", "resources", "resources/templates", "prompts", "skills"):
        yield f"{listing}/list", {}
    yield _tool("sage_info")
    yield _tool("sage_get_knowledge", layer="all", max_tokens=100_000)
    yield _tool("sage_search", query="what the team writes", max_tokens=20_000)
    yield _tool("sage_search", query="", sort="path")
    yield _tool("sage_get_context", task_type="coding", task="the team writes what it reads")
    yield _tool("sage_draft_note", text="The animal reads what the team writes.")
    yield "prompts/get", {"name": "sage_summarise", "arguments": {"topic": "what the team writes"}}
    yield "resources/read", {"uri": "knowledge://all"}
    for argument in ("layer", "topic", "language"):
        reference = {"type": "ref/resource", "uri": "knowledge://{layer}/{topic*}"}
        yield (
            "completion/complete",
            {"ref": reference, "argument": {"name": argument, "value": ""}},
        )
    for _, layer, name in PAGES:
        yield "resources/read", {"uri": f"knowledge://{layer}/{name}"}
        yield "resources/read", {"uri": f"related://{layer}/{name}"}
        yield "skills/get", {"uri": f"skill://sage-{layer}-{name}/SKILL.md"}
        yield "resources/read", {"uri": f"skill://sage-{layer}-{name}/SKILL.md"}
        yield _tool("sage_get_knowledge", topic=name)
        yield _tool("sage_search", query="the team", source="company")


def _tool(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


@pytest.mark.parametrize(("layers", "sources"), SCOPES, ids=str)
def test_a_token_sees_its_sources_and_layers_and_nothing_else(
    team: Team, layers: tuple[str, ...] | None, sources: tuple[str, ...] | None
) -> None:
    name = f"t{SCOPES.index((layers, sources))}"
    header = f"Authorization: Bearer {team.tokens.create(name, layers, sources=sources)}"
    told = [
        json.dumps(team.client.ask(method, params, header, era=NEW))
        for method, params in requests()
    ]
    may, every = seen_words(layers, sources), set(PAGES.values())
    found = {word for word in every if any(word in answer for answer in told)}
    assert found == may


@pytest.mark.parametrize(("layers", "sources"), [(("practices",), ("mapped",)), (None, ("gone",))])
def test_a_token_that_leaves_nothing_is_told_so(
    team: Team, layers: tuple[str, ...] | None, sources: tuple[str, ...]
) -> None:
    value = team.tokens.create(f"none-{sources[0]}", layers, sources=sources)
    reply = team.client.post(
        {"jsonrpc": "2.0", "id": 1, "method": "ping"}, f"Authorization: Bearer {value}"
    )
    assert reply.status == 403
    assert not any(word in str(reply.body) for word in PAGES.values())


def test_a_draft_has_no_place_where_the_repository_is_not_seen(team: Team) -> None:
    header = f"Authorization: Bearer {team.tokens.create('drafts', sources=['company'])}"
    answer = team.client.call("sage_draft_note", {"text": "Learned."}, header)
    assert answer["content"][0]["text"].startswith("NOT_FOUND: no layer of the repository")
