"""OpenTelemetry's home: a span for every request, when somebody collects them.

Nothing is set up unless the environment names a collector. The spans of the protocol and of the
tools, which FastMCP makes, then hang below ours and below whatever the caller sent along.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sage.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_CARRIERS = ("traceparent", "tracestate", "baggage")


class Tracing:
    """Makes spans, or does nothing."""

    def __init__(
        self, tracer: "Tracer | None" = None, close: Callable[[], object] | None = None
    ) -> None:
        self._tracer = tracer
        self._close = close

    @property
    def is_on(self) -> bool:
        """Whether anybody collects spans."""
        return self._tracer is not None

    @contextlib.contextmanager
    def span(self, name: str, headers: Callable[[str], str]) -> Iterator[Callable[..., None]]:
        """A span around a request; what is yielded adds attributes to it.

        Args:
            headers: a header of the request, "" when it is not there.
        """
        if self._tracer is None:
            yield _nothing
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        sent = {key: headers(key) for key in _CARRIERS if headers(key)}
        with self._tracer.start_as_current_span(name, extract(sent), SpanKind.SERVER) as span:

            def describe(failed: bool = False, **attributes: Any) -> None:
                span.set_attributes(
                    {key.replace("__", "."): value for key, value in attributes.items()}
                )
                if failed:
                    span.set_status(StatusCode.ERROR)

            yield describe

    def close(self) -> None:
        """Send what is still held."""
        if self._close is not None:
            self._close()


def tracing_from(environment: Mapping[str, str]) -> Tracing:
    """Tracing as the variables of OpenTelemetry ask for it.

    Raises:
        ConfigError: it is asked for and cannot be done.
    """
    wanted = any(environment.get(name) for name in _COLLECTORS)
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Tracing()
    try:
        provider = _provider(environment.get("OTEL_SERVICE_NAME", "sage"))
    except ImportError as error:
        raise ConfigError(
            "OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, which needs two more packages: "
            "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http, the extra otel"
        ) from error
    from opentelemetry import trace

    trace.set_tracer_provider(provider)
    return Tracing(provider.get_tracer("sage"), provider.shutdown)


def _provider(name: str) -> Any:
    """What collects spans and sends them; its packages are an extra of ours."""
    export = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    sdk = import_module("opentelemetry.sdk.trace")
    processor = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor
    resource = import_module("opentelemetry.sdk.resources").Resource
    provider = sdk.TracerProvider(resource=resource.create({"service.name": name}))
    provider.add_span_processor(processor(export.OTLPSpanExporter()))
    return provider


def _nothing(failed: bool = False, **attributes: Any) -> None:
    """What a span does that nobody collects."""
