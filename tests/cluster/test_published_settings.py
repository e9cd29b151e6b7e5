"""Sources, layers and settings that are published while a server runs are served at once."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sage.access.token_file import TokenFile
from sage.cluster.view import UNLOADED
from sage.context.recipes import load_recipes
from sage.deadline import Deadline
from sage.knowledge import KnowledgeBase
from sage.publish import repository_pages
from sage.settings import DEFAULT_LAYERS
from tests import httpkit
from tests.cluster.conftest import Team, beside, eventually, name_in_alias, told
from tests.http import test_source_tokens as source_tokens

RUNBOOK = {"runbooks/restart.md": "# Restart\n\nThe wombat restarts the queue.\n"}
ERRORS = {"guidelines/errors.md": "# Errors\n\nThe numbat pays once.\n"}


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


@pytest.fixture
def client(team: Team, tokens: TokenFile) -> Iterator[httpkit.Client]:
    """A server that was started when only the repository was published."""
    team.publish({"core/one.md": "# One\n\nThe quokka is first.\n"})
    tokens.create("first")
    opened = httpkit.serving(
        team.base.root, lambda _: team.replica(), tokens=tokens.path, require_token=True
    )
    with opened as client:
        yield client


def bearer(
    tokens: TokenFile, name: str, layers: tuple[str, ...] | None, sources: tuple[str, ...] | None
) -> str:
    return f"Authorization: Bearer {tokens.create(name, layers, sources=sources)}"


def topics(client: httpkit.Client, header: str, query: str) -> list[str]:
    """What a token finds; nothing where it is refused."""
    answer = client.call("sage_search", {"query": query}, header)
    found = answer.get("structuredContent", {}).get("results", [])
    return [one["topic"] for one in found]


def layers_offered(client: httpkit.Client, header: str) -> list[str]:
    """The layers that the tools take."""
    (search,) = (
        one for one in client.ask("tools/list", {}, header)["tools"] if one["name"] == "sage_search"
    )
    return list(search["inputSchema"]["properties"]["layer"]["enum"])


def task_types_offered(client: httpkit.Client, header: str) -> set[str]:
    """The task types that the tools take."""
    (context,) = (
        one
        for one in client.ask("tools/list", {}, header)["tools"]
        if one["name"] == "sage_get_context"
    )
    return set(context["inputSchema"]["properties"]["task_type"]["enum"])


def test_a_source_that_is_new_is_served_to_whoever_may_see_it(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    everybody = bearer(tokens, "all", None, None)
    payments = bearer(tokens, "payments", None, ("payments",))
    guidelines = bearer(tokens, "guidelines", ("core", "guidelines"), None)
    core = bearer(tokens, "core", ("core",), None)
    own = bearer(tokens, "own", None, ("own",))
    refused = client.post({}, payments)
    assert (refused.status, b"sources that this server does not serve" in refused.body) == (
        403,
        True,
    )
    for header in (everybody, guidelines, core, own):
        assert not topics(client, header, "numbat")
    other = beside(team, tmp_path / "payments")
    (other.base.root / "sage.yaml").write_text("layers: [core, guidelines, runbooks]\n")
    other.publish({**ERRORS, **RUNBOOK}, source="payments")
    page, runbook = "guidelines/payments/errors", "runbooks/payments/restart"
    eventually(lambda: topics(client, payments, "numbat") == [page], "pages of the new source")
    assert topics(client, everybody, "numbat") == topics(client, guidelines, "numbat") == [page]
    assert topics(client, everybody, "wombat") == topics(client, payments, "wombat") == [runbook]
    assert "runbooks" in layers_offered(client, everybody)
    for header in (core, own):
        assert not topics(client, header, "numbat")
    for header in (core, own, guidelines):
        assert not topics(client, header, "wombat")
        assert "runbooks" not in layers_offered(client, header)
    assert client.get("/readyz").status == 200
    metrics = client.get("/metrics", everybody).body.decode()
    assert 'sage_documents{layer="runbooks"} 1' in metrics


def test_settings_that_are_published_are_in_force(
    client: httpkit.Client, team: Team, tokens: TokenFile
) -> None:
    header = bearer(tokens, "all", None, None)
    assert not topics(client, header, "marsupial")
    (team.base.root / "sage.yaml").write_text(
        "synonyms: {marsupial: [quokka]}\nrecipes: {triage: {based_on: debugging}}\n"
    )
    team.publish()
    eventually(lambda: bool(topics(client, header, "marsupial")), "answers by the new synonym")
    given = {"task_type": "triage"}
    assert client.call("sage_get_context", given, header)["structuredContent"]["context"]


def test_a_token_for_a_source_gets_synonyms_and_task_types_of_no_other(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    (team.base.root / "sage.yaml").write_text(
        "synonyms: {marsupial: [numbat]}\nrecipes: {triage: {based_on: debugging}}\n"
    )
    team.publish()
    other = beside(team, tmp_path / "payments")
    (other.base.root / "sage.yaml").write_text("recipes: {refund: {based_on: coding}}\n")
    other.publish(ERRORS, source="payments")
    everybody = bearer(tokens, "all", None, None)
    payments = bearer(tokens, "payments", None, ("payments",))
    eventually(lambda: bool(topics(client, everybody, "marsupial")), "answers by the new synonym")
    assert topics(client, payments, "numbat")
    assert not topics(client, payments, "marsupial")
    offered = {header: task_types_offered(client, header) for header in (everybody, payments)}
    assert {"triage", "refund"} <= offered[everybody]
    assert "refund" in offered[payments]
    assert "triage" not in offered[payments]


def published_unchecked(monkeypatch: pytest.MonkeyPatch, *left_out: str, **said: Any) -> None:
    """Let the repository publish settings that nobody looks at, without some of them."""
    shared = repository_pages._shared

    def unchecked(*given: Any) -> dict[str, Any]:
        every = {**shared(*given), **said}
        return {name: value for name, value in every.items() if name not in left_out}

    monkeypatch.setattr(repository_pages, "_shared", unchecked)


def beside_published(
    team: Team, folder: Path, monkeypatch: pytest.MonkeyPatch, *left_out: str, **said: Any
) -> KnowledgeBase:
    """A replica of a base with a source that another version published."""
    (team.base.root / "sage.yaml").write_text("synonyms: {marsupial: [quokka]}\n")
    team.publish({"core/one.md": "# One\n\nThe quokka is first.\n"})
    other = beside(team, folder)
    (other.base.root / "sage.yaml").write_text(
        "layers: [core, guidelines, runbooks]\nsynonyms: {monotreme: [numbat]}\n"
        "recipes: {refund: {based_on: coding}}\n"
    )
    with monkeypatch.context() as patched:
        published_unchecked(patched, *left_out, **said)
        other.publish({**ERRORS, **RUNBOOK}, source="payments")
    return team.replica()


def found_by(replica: KnowledgeBase, query: str) -> list[str]:
    return [one["topic"] for one in replica.search(query)["results"]]


@pytest.mark.parametrize(
    "left_out",
    [
        ("layers",),
        ("stale_months",),
        ("layers", "synonyms", "recipes", "language", "stale_months"),
    ],
    ids=["layers", "months", "all"],
)
def test_settings_that_are_missing_take_their_defaults(
    left_out: tuple[str, ...], team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = beside_published(team, tmp_path / "payments", monkeypatch, *left_out)
    assert found_by(replica, "numbat") == ["guidelines/payments/errors"]
    assert found_by(replica, "wombat") == ["runbooks/payments/restart"]
    assert found_by(replica, "marsupial") == ["core/one"]
    assert bool(found_by(replica, "monotreme")) == ("synonyms" not in left_out)
    assert replica.get("runbooks")["content"]
    assert (told(replica)["status"], told(replica)["reasons"]) == ("healthy", [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("synonyms", None),
        ("synonyms", {"monotreme": 5}),
        ("recipes", ["refund"]),
        ("language", None),
        ("stale_months", "12"),
        ("layers", None),
        ("layers", ["core", 5]),
    ],
)
def test_settings_of_another_kind_leave_out_those_of_their_source_alone(
    name: str, value: object, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = beside_published(team, tmp_path / "payments", monkeypatch, **{name: value})
    assert found_by(replica, "numbat") == ["guidelines/payments/errors"]
    assert found_by(replica, "wombat") == ["runbooks/payments/restart"]
    assert found_by(replica, "marsupial") == ["core/one"]
    assert not found_by(replica, "monotreme")
    assert "refund" not in replica.task_types
    assert replica.context("coding", task="the numbat")["context"]
    assert told(replica)["status"] == "degraded"
    (reason,) = told(replica)["reasons"]
    assert f"for the source payments cannot be used ({name}" in reason
    assert "correct sage.yaml and publish again" in reason


def test_two_sources_that_know_other_words_for_one_are_both_right(
    team: Team, tmp_path: Path
) -> None:
    (team.base.root / "sage.yaml").write_text("synonyms: {chargeback: [refund, claim]}\n")
    team.publish({"core/one.md": "# One\n\nThe refund is first.\n"})
    other = beside(team, tmp_path / "delta")
    (other.base.root / "sage.yaml").write_text("synonyms: {chargeback: [narwhal, claim]}\n")
    other.publish({"core/two.md": "# Two\n\nThe narwhal is next.\n"}, source="delta")
    replica = team.replica()
    assert replica.settings.synonyms == {"chargeback": ("refund", "claim", "narwhal")}
    assert set(found_by(replica, "chargeback")) == {"core/one", "core/delta/two"}
    found = replica.search("chargeback", source="delta")["results"]
    assert [one["topic"] for one in found] == ["core/delta/two"]


def test_of_two_recipes_of_one_name_the_first_is_right(team: Team, tmp_path: Path) -> None:
    """Also where another recipe of the second source is based on its own of that name."""
    (team.base.root / "sage.yaml").write_text(
        "recipes: {base: {based_on: coding}, shared: {based_on: base, words: [quokka]}}\n"
    )
    team.publish({"core/one.md": "# One\n\nThe quokka is first.\n"})
    other = beside(team, tmp_path / "payments")
    (other.base.root / "sage.yaml").write_text(
        "recipes: {shared: {based_on: coding, words: [numbat]}, refund: {based_on: shared}}\n"
    )
    other.publish(ERRORS, source="payments")
    replica = team.replica()
    assert told(replica)["status"] == "healthy"
    recipes = load_recipes(replica.settings)
    assert [recipes[name].words[-1] for name in ("shared", "refund")] == ["quokka", "quokka"]


def test_a_token_gets_the_settings_of_its_source_whatever_others_publish(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    everybody = bearer(tokens, "all", None, None)
    payments = bearer(tokens, "payments", None, ("payments",))
    other = beside(team, tmp_path / "payments")
    (other.base.root / "sage.yaml").write_text(
        "layers: [core, guidelines, practices]\nsynonyms: {monotreme: [numbat]}\n"
        "recipes: {shared: {based_on: coding}, refund: {based_on: shared}}\n"
    )
    other.publish({**ERRORS, "core/two.md": "# Two\n\nNext.\n"}, source="payments")
    eventually(lambda: bool(topics(client, payments, "numbat")), "pages of the new source")
    before = layers_offered(client, payments), task_types_offered(client, payments)
    assert before[0] == ["core", "guidelines", "practices", "all"]
    assert {"shared", "refund"} <= before[1]
    (team.base.root / "sage.yaml").write_text(
        "layers: [practices, guidelines, core]\n"
        "recipes: {base: {based_on: coding}, shared: {based_on: base}}\n"
    )
    team.publish({"core/one.md": "# One\n\nThe bilby is first.\n"})
    eventually(lambda: bool(topics(client, everybody, "bilby")), "the page that is not seen")
    assert layers_offered(client, everybody)[0] == "practices"
    assert (layers_offered(client, payments), task_types_offered(client, payments)) == before
    assert topics(client, payments, "monotreme") == ["guidelines/payments/errors"]


def test_a_token_for_a_source_that_is_not_published_learns_no_layer_of_others(
    team: Team, tokens: TokenFile
) -> None:
    (team.base.root / "sage.yaml").write_text("layers: [hiddenlayer]\n")
    team.publish({"hiddenlayer/one.md": "# One\n\nThe quokka.\n"}, source="hidden")
    scopes = [(None, ("own",)), (("hiddenlayer",), ("own",)), (("nolayer",), ("own",))]
    headers = [bearer(tokens, f"t{number}", *scope) for number, scope in enumerate(scopes)]
    everybody = bearer(tokens, "all", None, None)
    with httpkit.serving(
        team.base.root, lambda _: team.replica(), tokens=tokens.path, require_token=True
    ) as client:
        assert layers_offered(client, everybody) == ["hiddenlayer", "all"]
        refused = [client.post({}, header) for header in headers]
        assert {one.status for one in refused} == {403}
        assert len({one.body for one in refused}) == 1
        assert b"hiddenlayer" not in refused[0].body


def test_a_token_for_a_source_that_cannot_be_loaded_learns_no_layer_of_others(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    (team.base.root / "sage.yaml").write_text("layers: [core, hiddenlayer]\n")
    team.publish({"hiddenlayer/one.md": "# One\n\nThe quokka.\n"})
    beside(team, tmp_path / "payments").publish(ERRORS, source="payments")
    everybody = bearer(tokens, "all", None, None)
    theirs = bearer(tokens, "theirs", None, ("payments",))
    narrow = [
        bearer(tokens, layer, (layer,), ("payments",)) for layer in ("hiddenlayer", "nolayer")
    ]
    eventually(lambda: bool(topics(client, theirs, "numbat")), "pages of the other source")
    old = name_in_alias(team, "payments")
    team.connection.request("DELETE", f"/{old}", None, Deadline(30_000))

    def info(header: str) -> str:
        return str(client.call("sage_info", {}, header)["structuredContent"])

    eventually(lambda: "payments is not served" in info(everybody), "words about the source")
    assert layers_offered(client, everybody) == ["core", "hiddenlayer", "all"]
    assert layers_offered(client, theirs) == [*DEFAULT_LAYERS, "all"]
    for header, layer in zip(narrow, ("hiddenlayer", "nolayer"), strict=True):
        assert layers_offered(client, header) == [layer, "all"]
    for header in (theirs, *narrow):
        assert UNLOADED in info(header)
        answer = client.call("sage_search", {"query": "quokka"}, header)
        assert answer["content"][0]["text"] == f"UNAVAILABLE: {UNLOADED}"
    assert "hiddenlayer" not in info(theirs)


@pytest.mark.parametrize(
    "recipe", [{"based_on": "nothing"}, {"layers": {"nolayer": 5}}], ids=["base", "layer"]
)
def test_settings_that_cannot_be_used_are_left_out_and_told(
    recipe: Mapping[str, Any],
    client: httpkit.Client,
    team: Team,
    tokens: TokenFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    header = bearer(tokens, "all", None, None)
    part = bearer(tokens, "part", ("core",), ("own",))

    def state(header: str = header) -> str:
        answer: str = client.call("sage_info", {}, header)["structuredContent"]["status"]
        return answer

    (team.base.root / "sage.yaml").write_text(
        "synonyms: {marsupial: [quokka]}\nrecipes: {triage: {based_on: debugging}}\n"
    )
    team.publish()
    other = beside(team, tmp_path / "payments")
    with monkeypatch.context() as patched:
        bad = {"recipes": {"refund": recipe}, "synonyms": {"monotreme": ["numbat"]}}
        published_unchecked(patched, **bad)
        other.publish(ERRORS, source="payments")

    def reasons() -> str:
        # On a busy machine the new generation may be waited for meanwhile, which is told too.
        return "\n".join(client.call("sage_info", {}, header)["structuredContent"]["reasons"])

    said = "for the source payments cannot be used"
    eventually(lambda: reasons().count("\n") == 0 and said in reasons(), "words on the settings")
    reason = reasons()
    assert state() == "degraded"
    assert "correct sage.yaml and publish again" in reason
    assert state(part) == "healthy"
    assert topics(client, header, "numbat") == ["guidelines/payments/errors"]
    assert topics(client, header, "marsupial") == ["core/one"]
    assert not topics(client, header, "monotreme")
    assert {"triage"} <= task_types_offered(client, header)
    assert "refund" not in task_types_offered(client, header)
    fresh = team.replica()
    assert (told(fresh)["status"], told(fresh)["reasons"]) == ("degraded", [reason])
    assert set(fresh.task_types) == task_types_offered(client, header)
    other.publish(source="payments")
    eventually(lambda: state() == "healthy", "signs of the correction")


def test_a_token_for_a_source_gets_what_was_published_for_it_last(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    """Also where another source has the last word for all together."""
    (team.base.root / "sage.yaml").write_text("synonyms: {animal: [quokka]}\n")
    team.publish()
    other = beside(team, tmp_path / "payments")
    (other.base.root / "sage.yaml").write_text("synonyms: {animal: [numbat]}\n")
    other.publish({**ERRORS, "guidelines/quiet.md": "# Quiet\n\nA fjord.\n"}, source="payments")
    payments = bearer(tokens, "payments", None, ("payments",))
    errors, quiet = "guidelines/payments/errors", "guidelines/payments/quiet"
    eventually(lambda: topics(client, payments, "animal") == [errors], "its synonym")
    (other.base.root / "sage.yaml").write_text("synonyms: {animal: [fjord]}\n")
    other.publish(source="payments")
    eventually(lambda: topics(client, payments, "animal") == [quiet], "its new synonym")


def test_a_token_for_layers_learns_nothing_of_a_source_without_a_page_in_them(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    core = bearer(tokens, "core", ("core", "guidelines"), None)
    everybody = bearer(tokens, "all", None, None)

    def all_told() -> str:
        asked = [*source_tokens.requests(), ("tools/call", {"name": "sage_info", "arguments": {}})]
        reference = {"type": "ref/prompt", "name": "sage_task_prompt"}
        given = {"ref": reference, "argument": {"name": "task_type", "value": ""}}
        asked.append(("completion/complete", given))
        query = {"name": "sage_search", "arguments": {"query": "x", "source": "nowhere"}}
        asked.append(("tools/call", query))
        told = json.dumps([client.ask(*one, core, era=httpkit.NEW) for one in asked])
        return re.sub(r'[\\"]+(\w+_(ms|seconds)|hit_rate)[\\"]+: ?[\d.]+', "", told)

    before = all_told()
    other = beside(team, tmp_path / "shadow")
    (other.base.root / "sage.yaml").write_text(
        "layers: [core, practices, shadowlayer]\nsynonyms: {orca: [quokka]}\n"
        "recipes: {narwhaltask: {layers: {shadowlayer: 5}}}\n"
    )
    hidden = {"practices/a.md": "# A\n\nThe numbat.\n", "shadowlayer/b.md": "# B\n\nHidden.\n"}
    other.publish(hidden, source="shadow")
    eventually(lambda: bool(topics(client, everybody, "numbat")), "pages of the new source")
    assert topics(client, everybody, "orca")
    assert not topics(client, core, "orca")
    assert all_told() == before
    team.publish({"practices/more.md": "# More\n\nThe bilby.\n"})
    eventually(lambda: bool(topics(client, everybody, "bilby")), "the page that is not seen")
    assert all_told() == before
    assert json.loads(client.call("sage_info", {}, core)["content"][0]["text"])["published"] == [
        {"source": "own"}
    ]


def test_a_source_that_cannot_be_loaded_is_named_to_nobody_who_may_not_know_it(
    client: httpkit.Client, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    beside(team, tmp_path / "secret").publish(ERRORS, source="topsecret")
    everybody = bearer(tokens, "all", None, None)
    own = bearer(tokens, "own", None, ("own",))
    layer = bearer(tokens, "layer", ("core", "guidelines"), None)
    theirs = bearer(tokens, "theirs", None, ("topsecret",))
    eventually(lambda: bool(topics(client, theirs, "numbat")), "pages of the other source")
    old = name_in_alias(team, "topsecret")
    team.connection.request("DELETE", f"/{old}", None, Deadline(30_000))

    def info(header: str) -> str:
        return str(client.call("sage_info", {}, header)["structuredContent"])

    eventually(lambda: "topsecret is not served" in info(everybody), "words about the source")
    assert client.get("/readyz").status == 200
    for header in (own, layer):
        for method, params in source_tokens.requests():
            assert "topsecret" not in json.dumps(client.ask(method, params, header))
        assert topics(client, header, "quokka") == ["core/one"]
    assert "'healthy'" in info(own)
    assert UNLOADED in info(layer)
    answer = client.call("sage_search", {"query": "numbat"}, theirs)
    assert answer["content"][0]["text"] == f"UNAVAILABLE: {UNLOADED}"
    assert UNLOADED in info(theirs)
    assert "another version" not in info(theirs)


@pytest.mark.parametrize("before", [3, 1], ids=["served from the start", "published meanwhile"])
def test_tokens_for_layers_and_sources_leak_nothing(
    before: int, team: Team, tokens: TokenFile, tmp_path: Path
) -> None:
    """The matrix of the tests of source tokens: each page holds a word of its own."""

    def publish(source: str, folder: str) -> None:
        pages = {
            f"{layer}/{name}.md": f"# About {word}\n\nThe {word} reads what the team writes.\n"
            for (owner, layer, name), word in source_tokens.PAGES.items()
            if owner == source
        }
        beside(team, tmp_path / "sources" / folder).publish(pages, source=source)

    folders = list(source_tokens.FOLDERS.items())
    for source, folder in folders[:before]:
        publish(source, folder)
    tokens.create("first")
    opened = httpkit.serving(
        team.base.root, lambda _: team.replica(), tokens=tokens.path, require_token=True
    )
    with opened as client:
        scopes = {
            bearer(tokens, f"t{number}", *scope): scope
            for number, scope in enumerate(source_tokens.SCOPES)
        }
        for header in scopes:
            client.call("sage_search", {"query": "team"}, header)
        for source, folder in folders[before:]:
            publish(source, folder)
        eventually(lambda: len(told(client.knowledge)["published"]) == 3, "all sources")
        for header, (layers, sources) in scopes.items():
            may = {
                word
                for (source, layer, _), word in source_tokens.PAGES.items()
                if (not layers or layer in layers) and (not sources or source in sources)
            }
            assert words_told(client, header) == may


def words_told(client: httpkit.Client, header: str) -> set[str]:
    """The words that any answer to a token holds; what is asked for is misspelt."""
    words = source_tokens.PAGES.values()
    asked = {json.dumps(one): one for one in source_tokens.requests() if "draft" not in str(one)}
    for word in words:
        query = {"query": f"{word[:-2]}{word[-1]}"}
        asked[word] = ("tools/call", {"name": "sage_search", "arguments": query})
    told = [json.dumps(client.ask(*one, header, era=httpkit.NEW)) for one in asked.values()]
    return {word for word in words if any(word in answer for answer in told)}
