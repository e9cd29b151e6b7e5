"""Spans, for those who collect them."""

import sys
from typing import Any

import pytest

from sage.errors import ConfigError
from sage.tracing import Tracing, tracing_from

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
    with pytest.raises(ConfigError, match=r"sage-kb\[otel\]"):
        tracing_from({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})


def test_a_request_is_a_span_below_that_of_its_caller() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export: Any = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory: Any = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept = memory.InMemorySpanExporter()
    provider: Any = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    tracing = Tracing(provider.get_tracer("sage"), provider.shutdown)
    sent = {"traceparent": PARENT}
    with tracing.span("POST", lambda name: sent.get(name, "")) as describe:
        with provider.get_tracer("fastmcp").start_as_current_span("tools/call"):
            pass
        describe(failed=True, http__response__status_code=500)
    inner, outer = kept.get_finished_spans()
    assert f"{outer.context.trace_id:032x}" == PARENT.split("-")[1]
    assert inner.parent.span_id == outer.context.span_id
    assert outer.attributes["http.response.status_code"] == 500
    assert not outer.status.is_ok
    tracing.close()
