"""Spans, for those who collect them."""

import gzip
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sage.errors import ConfigError
from sage.http.tracing import Tracing, tracing_from
from tests.httpkit import Client, Process, write_base

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_without_a_collector_nothing_is_traced() -> None:
    for environment in (
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"},
    ):
        tracing = tracing_from(environment)
        with tracing.span("GET", lambda _: "") as describe:
            describe(failed=True, url__path="/healthz")
        tracing.close()


def test_a_collector_without_the_packages_is_a_setting_to_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"extra otel"):
        tracing_from({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})


def test_a_request_is_a_span_below_that_of_its_caller() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracing = Tracing(provider.get_tracer("sage"), provider.shutdown)
    sent = {"traceparent": PARENT}
    with tracing.span("POST", lambda name: sent.get(name, "")) as describe:
        with provider.get_tracer("fastmcp").start_as_current_span("tools/call"):
            pass
        describe(failed=True, http__response__status_code=500)
    inner, outer = kept.get_finished_spans()
    assert outer.context is not None
    assert f"{outer.context.trace_id:032x}" == PARENT.split("-")[1]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert outer.attributes is not None
    assert outer.attributes["http.response.status_code"] == 500
    assert not outer.status.is_ok
    tracing.close()


class _Collector(BaseHTTPRequestHandler):
    """Takes in what a server exports."""

    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        data = self.rfile.read(int(self.headers["Content-Length"]))
        packed = self.headers.get("Content-Encoding") == "gzip"
        self.server.received.append((self.path, gzip.decompress(data) if packed else data))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return None


class Collector(ThreadingHTTPServer):
    """A collector of traces on this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Collector)
        self.received: list[tuple[str, bytes]] = []


def test_a_server_that_is_told_of_a_collector_sends_it_spans(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.05,))
        thread.start()
        url = f"http://127.0.0.1:{collector.server_address[1]}"
        with Process(root, OTEL_EXPORTER_OTLP_ENDPOINT=url) as process:
            client = Client(process.port)
            client.call("sage_search", {"query": "walrus"}, f"traceparent: {PARENT}")
            assert process.stop() == 0
        collector.shutdown()
        thread.join()
    assert {path for path, _ in collector.received} == {"/v1/traces"}
    sent = b"".join(data for _, data in collector.received)
    for part in (bytes.fromhex(PARENT.split("-")[1]), b"sage.tool", b"sage_search", b"/mcp"):
        assert part in sent
    assert b"walrus" not in sent
