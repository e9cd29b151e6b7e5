"""What a server without files shows beside the tools: the page, prompts, metrics, its state."""

import json
import signal
from collections.abc import Iterator

import pytest

from sage.cluster.conformance import PAGES
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded
from tests import httpkit
from tests.cluster.conftest import Team, eventually, told
from tests.cluster.nodes import Node
from tests.commands import Run, run

__all__ = ["run"]


@pytest.fixture
def client(team: Team) -> Iterator[httpkit.Client]:
    team.publish(PAGES)
    with httpkit.serving(team.base.root, lambda _: team.replica(), page=True) as client:
        yield client


def shown(client: httpkit.Client, path: str) -> str:
    """A page that people look at."""
    reply = client.get(path)
    assert reply.status == 200, path
    return reply.body.decode()


def test_the_page_shows_what_is_published(client: httpkit.Client, team: Team) -> None:
    assert "Roll back with" in shown(client, "/?q=rollback")
    assert "Retry a failed request three times" in shown(client, "/read/guidelines/errors")
    assert "tags: [reliability]" in shown(client, "/raw/guidelines/errors")
    assert "Error handling" in shown(client, "/read/guidelines")
    assert "Everything that is there is served" in shown(client, "/health")
    assert "run <code>sage check</code> in each" in shown(client, "/health/findings")
    assert client.get("/read/guidelines/nothing").status == 404
    team.publish({"guidelines/errors.md": "# Errors\n\nMarmalade.\n"})
    eventually(lambda: "Marmalade" in shown(client, "/read/guidelines/errors"), "the new page")


@pytest.mark.parametrize(
    "path", ["/?q=rollback", "/health", "/health/care", "/read/guidelines/errors", "/recent"]
)
def test_the_page_says_that_the_cluster_is_silent(
    client: httpkit.Client, node: Node, path: str
) -> None:
    node.kill(signal.SIGSTOP)
    try:
        reply = client.get(path)
    finally:
        node.kill(signal.SIGCONT)
    assert (reply.status, b"look at the cluster" in reply.body) == (503, True)
    eventually(lambda: client.get(path).status == 200, "answers of the page")


def test_a_prompt_holds_the_pages_of_its_task(client: httpkit.Client) -> None:
    given = {"task_type": "coding", "context": "retry a failed request"}
    answer = client.ask("prompts/get", {"name": "sage_task_prompt", "arguments": given})
    assert "Retry a failed request three times" in json.dumps(answer["messages"])


def test_no_size_is_told_of_an_index_that_lies_in_the_cluster(client: httpkit.Client) -> None:
    names = {line.partition(" ")[0] for line in client.get("/metrics").body.decode().splitlines()}
    assert {"sage_index_documents", "sage_index_sections"} <= names
    assert "sage_index_bytes" not in names


def test_metrics_name_the_generation_and_how_far_behind_it_is(client: httpkit.Client) -> None:
    metrics = client.get("/metrics").body.decode()
    (one,) = told(client.knowledge)["published"]
    served = f'source="own",generation="{one["generation"]}",commit="{one["commit"]}"'
    assert f"sage_generation{{{served}}} 1" in metrics
    (behind,) = (line for line in metrics.splitlines() if line.startswith("sage_behind_seconds"))
    assert float(behind.split()[1]) >= 0


def test_the_command_tells_the_generation(run: Run, team: Team) -> None:
    done = team.publish(PAGES)
    code, out, _ = run("info", "--url", team.options.urls[0], "--base", team.options.base)
    assert (code, f"generation {done.index}" in out, "behind" in out) == (0, True, True)


def test_whoever_waits_for_a_cluster_that_hangs_is_told_so(
    run: Run, team: Team, node: Node
) -> None:
    team.publish(PAGES)
    replica = team.replica()
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    node.kill(signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutExceeded, match="did not answer in time; look at the cluster"):
            replica.search("rollback", deadline=Deadline(1_500))
        code, _, err = run("info", *at)
        assert (code, "did not answer in time" in err, "ask for less" in err) == (3, True, False)
    finally:
        node.kill(signal.SIGCONT)
