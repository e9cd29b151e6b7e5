"""The files to start a deployment from say what the server really takes and answers.

Their own validators are run by hand: docs/deployment.md names them.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from sage.access.limits import Limits
from sage.access.options import PROBES
from sage.cli.main import app

FOLDER = Path(__file__).parent.parent / "docs" / "deploy"
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())
_VARIABLE = re.compile(r"\bSAGE_[A-Z_]+\b")
_OPTION = re.compile(r"sage serve --http ([^\n]*)")
SETTINGS = {"SAGE_ROOT", "SAGE_CACHE_DIR", "SAGE_LOG_LEVEL"}


def text_of(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def resource(kind: str) -> Any:
    (found,) = (
        one for one in yaml.safe_load_all(text_of("kubernetes.yaml")) if one["kind"] == kind
    )
    return found


@pytest.fixture(scope="module")
def help_text() -> str:
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    return shown.output


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_and_flag_is_one_that_the_server_takes(path: Path, help_text: str) -> None:
    text = path.read_text("utf-8")
    for name in set(_VARIABLE.findall(text)) - SETTINGS:
        assert name in help_text
    for line in _OPTION.findall(text):
        for flag in re.findall(r"--[a-z-]+", line):
            assert flag in help_text


def test_every_probe_asks_where_the_server_answers() -> None:
    container = resource("Deployment")["spec"]["template"]["spec"]["containers"][0]
    probes = [container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")]
    assert probes == ["/readyz", "/readyz", "/healthz"]
    named = re.findall(
        r"/(?:readyz|healthz|metrics)\b", text_of("Dockerfile") + text_of("Caddyfile")
    )
    assert set(named) | set(probes) <= set(PROBES)


def test_two_replicas_run_without_rights_on_a_read_only_checkout() -> None:
    spec = resource("Deployment")["spec"]
    pod = spec["template"]["spec"]
    server = pod["containers"][0]
    assert spec["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert server["securityContext"]["readOnlyRootFilesystem"] is True
    assert {one["name"] for one in server["volumeMounts"] if one.get("readOnly")} == {
        "knowledge", "tokens",
    }  # fmt: skip
    compose = yaml.safe_load(text_of("compose.yaml"))["services"]["sage"]
    assert compose["read_only"] is True
    assert "knowledge:/srv/knowledge:ro" in compose["volumes"]


def test_everywhere_the_server_runs_as_the_same_user() -> None:
    user = re.search(r"^USER (\d+):(\d+)$", text_of("Dockerfile"), re.MULTILINE)
    assert user is not None
    pod = resource("Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert (str(pod["runAsUser"]), str(pod["runAsGroup"])) == user.groups()
    assert f"chown {user[1]}:{user[2]} tokens.json" in text_of("compose.yaml")


def test_a_proxy_is_as_patient_and_as_strict_as_the_server() -> None:
    limits, nginx = Limits(), text_of("nginx.conf")
    assert f"client_max_body_size {limits.body_bytes // 1024}k;" in nginx
    assert f"client_body_timeout {limits.body_seconds:g}s;" in nginx
    assert f"client_header_timeout {limits.header_seconds:g}s;" in nginx
    idle = re.search(r"keepalive_timeout (\d+)s;", nginx)
    assert idle is not None
    assert int(idle[1]) < limits.idle_seconds


def test_what_ends_the_server_waits_for_its_grace() -> None:
    pod = resource("Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= 5 + 10
    assert "TimeoutStopSec=20" in text_of("sage.service")
    assert yaml.safe_load(text_of("compose.yaml"))["services"]["sage"]["stop_grace_period"] == "20s"


def clustered(kind: str, name: str) -> Any:
    (found,) = (
        one
        for one in yaml.safe_load_all(text_of("kubernetes-cluster.yaml"))
        if (one["kind"], one["metadata"]["name"]) == (kind, name)
    )
    return found


def hosts_in(urls: str) -> list[str]:
    return [re.sub(r"^http://|:9200$", "", url) for url in urls.split(",")]


def test_replicas_know_all_three_nodes_of_the_cluster_and_have_no_files() -> None:
    services = yaml.safe_load(text_of("compose-cluster.yaml"))["services"]
    nodes = [name for name in services if name.startswith("search")]
    assert hosts_in(services["sage"]["environment"]["SAGE_OPENSEARCH_URL"]) == nodes
    assert all(services[name]["environment"]["node.name"] == name for name in nodes)
    assert "volumes" not in services["sage"]
    stateful = clustered("StatefulSet", "search")["spec"]
    pod = clustered("Deployment", "sage")["spec"]["template"]["spec"]
    known = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    names = [f"search-{number}" for number in range(stateful["replicas"])]
    assert hosts_in(known["SAGE_OPENSEARCH_URL"]) == [f"{name}.search" for name in names]
    assert {one["name"] for one in pod["volumes"]} == {"cache", "tmp", "tokens"}
    node = stateful["template"]["spec"]["containers"][0]["env"]
    managers = {one["name"]: one.get("value") for one in node}
    assert managers["cluster.initial_cluster_manager_nodes"] == ",".join(names)


def test_only_replicas_reach_a_cluster_without_accounts() -> None:
    compose = yaml.safe_load(text_of("compose-cluster.yaml"))
    assert compose["networks"]["cluster"]["internal"] is True
    for name, service in compose["services"].items():
        assert name == "sage" or (service["networks"], "ports" in service) == (["cluster"], False)
    policy = clustered("NetworkPolicy", "search")["spec"]
    assert policy["podSelector"] == clustered("StatefulSet", "search")["spec"]["selector"]
    allowed = policy["ingress"][0]
    assert allowed["ports"] == [{"port": 9200}]
    assert allowed["from"][0]["podSelector"] == clustered("Deployment", "sage")["spec"]["selector"]
