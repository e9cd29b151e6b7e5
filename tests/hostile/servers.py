"""One client for both transports, which looks at every answer before anybody reads it."""

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests import httpkit
from tests.hostile.cases import HEALTHY
from tests.processes import Process, serving

# A call that is not answered by then hangs: its own deadline is half of this.
CALL_SECONDS = 300
# Surrogates, controls other than tab and line feed, direction controls, marks of order, tags.
_FORBIDDEN = re.compile(
    "[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


class Speaker(Protocol):
    """Carries a request to a server and its answer back."""

    name: str

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The whole message that answers."""
        ...


class Stdio:
    """A server on pipes."""

    name = "stdio"

    def __init__(self, process: Process) -> None:
        self.process = process
        process.greet()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        late = threading.Timer(CALL_SECONDS, self.process.popen.kill)
        late.start()
        try:
            return self.process.request(method, params)
        finally:
            late.cancel()


class Http:
    """A server on a socket, spoken to over one connection."""

    name = "http"

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_SECONDS)

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": httpkit.OLD,
        }
        self._connection.request("POST", "/mcp", body, headers)
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return answer

    def close(self) -> None:
        self._connection.close()


class Served:
    """A server as the tests ask it: every answer is checked for characters that may not leave."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The whole message that answers a request."""
        answer = self.speaker.ask(method, params)
        found = sorted(set(_FORBIDDEN.findall(json.dumps(answer, ensure_ascii=False))))
        assert not found, f"{self.speaker.name} sent {found}"
        return answer

    def result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request that must succeed."""
        answer = self.ask(method, params)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; it must not be an error."""
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result["content"]
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def read(self, topic: str) -> str:
        """The content of a topic."""
        return str(
            self.call(
                "sage_get_knowledge",
                layer="all",
                topic=topic,
                timeout_ms=30_000,
                max_tokens=1_000_000,
            )["content"]
        )

    def wait_for_index(self) -> None:
        """Search until nothing is missing; each call ends by its own deadline."""
        until = time.monotonic() + 4 * CALL_SECONDS
        while not self.call("sage_search", query="quokka").get("complete", True):
            assert time.monotonic() < until, "the index is never complete"

    def info_of_all(self) -> dict[str, Any]:
        """The state once every page was looked at: a call does so for a moment only."""
        until = time.monotonic() + 4 * CALL_SECONDS
        info = self.call("sage_info")
        while "unread" in info["problems"] or "did not answer" in str(info.get("reasons")):
            assert time.monotonic() < until, (info["problems"], info.get("reasons"))
            info = self.call("sage_info")
        return info

    def check_healthy(self) -> None:
        """Every way to the healthy pages leads to their exact text."""
        self.check_found()
        packed = self.call("sage_get_context", task_type="coding", task="quokka, axolotl")
        for text in HEALTHY.values():
            assert text.splitlines()[-1] in packed["context"], self.speaker.name

    def check_found(self) -> None:
        """The healthy pages are read and found."""
        for path, text in HEALTHY.items():
            assert text.strip() in self.read(path), self.speaker.name
        page = HEALTHY["core/healthy.md"]
        sentence = page.splitlines()[-1]
        best = self.call("sage_search", query="which quokka reads this line")["results"][0]
        assert best["path"].endswith("/core/healthy.md")
        assert sentence in best["snippet"]


@contextmanager
def serving_stdio(root: Path, cache: Path, **environment: str) -> Iterator[Served]:
    """A server of a root on pipes."""
    with serving(root, None, SAGE_CACHE_DIR=str(cache), **environment) as process:
        yield Served(Stdio(process))


@contextmanager
def serving_http(root: Path, cache: Path, **environment: str) -> Iterator[Served]:
    """A server of a root over HTTP, which takes as many calls as come."""
    with httpkit.Process(
        root, "--rate", "100000", SAGE_CACHE_DIR=str(cache), **environment
    ) as process:
        client = httpkit.Client(process.port)
        httpkit.wait_until_ready(client)
        with closing(Http(process.port)) as speaker:
            yield Served(speaker)
