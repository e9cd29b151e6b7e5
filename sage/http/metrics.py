"""What a server observes of its calls, counts and times, in the text format of Prometheus.

Written by hand: the format is a page, and a library for it would keep its numbers in globals.
Label values come from fixed sets, so the number of series has a bound.
"""

import asyncio
import contextlib
import os
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError

from sage.errors import CODES, SageError

OK = "ok"
RESOURCE = "resource"
UNKNOWN = "unknown"

_INTERNAL = SageError.code
_CODE = re.compile(rf"({'|'.join(sorted(CODES))}): ")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# What a process holds, which adds up over those of one server; any other gauge is of them all.
_ADDED_GAUGES = frozenset(
    (
        "sage_calls_running",
        "sage_calls_waiting",
        "sage_streams",
        "sage_threads",
        "sage_workers",
        "process_resident_memory_bytes",
        "process_open_fds",
    )
)

Labels = tuple[str, ...]
Samples = Mapping[Labels, float]


class Observation(NamedTuple):
    """One call of a tool, or one reading of a resource, that is over."""

    tool: str
    outcome: str
    """`ok`, the code of an error, or `cancelled`."""
    seconds: float
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    """What the tool answered, or the content of the resource."""


Observer = Callable[[Observation], None]


class CounterMetric:
    """Numbers that only grow, one for each combination of labels."""

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self._head = (name, about, "counter")
        self._labels = labels
        self._values: dict[Labels, float] = {}

    def add(self, *values: str, by: float = 1) -> None:
        """Count one more, or several."""
        self._values[values] = self._values.get(values, 0) + by

    def lines(self) -> Iterator[str]:
        return family(*self._head, self._labels, self._values)


class Histogram:
    """How long things took, one distribution for each combination of labels."""

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, *values: str) -> None:
        """Count one that took so long."""
        counts = self._counts.setdefault(values, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[values] = self._sums.get(values, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, self._about, "histogram")
        bounds = [*map(_number, SECONDS), "+Inf"]
        for values, counts in sorted(self._counts.items()):
            below = 0
            for bound, count in zip(bounds, counts, strict=True):
                below += count
                labels = _labelled((*self._labels, "le"), (*values, bound))
                yield f"{self._name}_bucket{labels} {below}"
            labels = _labelled(self._labels, values)
            yield f"{self._name}_sum{labels} {_number(self._sums[values])}"
            yield f"{self._name}_count{labels} {below}"


class ServerMetrics:
    """What a server counts and times of the requests and calls that come to it."""

    def __init__(self) -> None:
        self.requests = CounterMetric(
            "sage_http_requests_total", "Requests by answer.", ("endpoint", "status")
        )
        self.calls = CounterMetric("sage_calls_total", "Calls by end.", ("tool", "outcome"))
        self.seconds = Histogram("sage_call_seconds", "Time in a tool.", ("tool",))

    def observe(self, seen: Observation) -> None:
        self.calls.add(seen.tool, seen.outcome)
        self.seconds.observe(seen.seconds, seen.tool)

    def families(self) -> list[Iterator[str]]:
        """Everything so far, as text."""
        return [self.requests.lines(), self.calls.lines(), self.seconds.lines()]


def family(name: str, about: str, kind: str, labels: Labels, samples: Samples) -> Iterator[str]:
    """Counters or gauges as text."""
    yield from _head(name, about, kind)
    for values, number in sorted(samples.items()):
        yield f"{name}{_labelled(labels, values)} {_number(number)}"


def gauge(name: str, about: str, number: float) -> Iterator[str]:
    """One number that goes up and down, as text."""
    return family(name, about, "gauge", (), {(): number})


def rendered(families: Iterable[Iterable[str]]) -> bytes:
    """The page of a number of families."""
    return "".join(f"{line}\n" for lines in families for line in lines).encode()


def added_up(pages: Sequence[bytes], only_counters: bool = False) -> bytes:
    """The first of several pages, with what the others counted or hold added to it.

    Args:
        only_counters: leave out what only says how it was at a moment.
    """
    families: dict[str, _Family] = {}
    for number, page in enumerate(pages):
        for name, found in _parsed(page.decode()).items():
            family = families.setdefault(name, _Family(found.head, found.kind, {}))
            adds = found.kind != "gauge" or (name in _ADDED_GAUGES and not only_counters)
            for sample, value in found.samples.items():
                if adds:
                    family.samples[sample] = family.samples.get(sample, 0.0) + value
                elif not only_counters and not number:
                    family.samples[sample] = value
    lines = [
        line
        for family in families.values()
        for line in (*family.head, *(f"{key} {_number(at)}" for key, at in family.samples.items()))
    ]
    return rendered([lines])


class _Family(NamedTuple):
    head: list[str]
    kind: str
    samples: dict[str, float]


def _parsed(page: str) -> dict[str, _Family]:
    families: dict[str, _Family] = {}
    head: list[str] = []
    name = ""
    for line in page.splitlines():
        if line.startswith("# HELP "):
            head, name = [line], line.split(" ")[2]
        elif line.startswith("# TYPE "):
            families[name] = _Family([*head, line], line.split(" ")[3], {})
        else:
            sample, _, value = line.rpartition(" ")
            families[name].samples[sample] = float(value)
    return families


def process_families() -> list[Iterator[str]]:
    """What the process uses of its machine, under the names that dashboards know."""
    families = [
        family(
            "process_cpu_seconds_total",
            "Processor time used.",
            "counter",
            (),
            {(): time.process_time()},
        ),
        gauge("sage_threads", "Threads that are alive.", threading.active_count()),
    ]
    own = Path("/proc/self")
    if own.exists():
        pages = int((own / "statm").read_text().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        files = sum(1 for _ in (own / "fd").iterdir())
        families += [
            gauge("process_resident_memory_bytes", "Memory in use.", memory),
            gauge("process_open_fds", "Open files and connections.", files),
        ]
    return families


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _labelled(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))


@dataclass(slots=True)
class RunningCall:
    """A call that is being observed; whoever makes it says how it went."""

    outcome: str = OK
    answer: Mapping[str, Any] | None = None


@contextlib.contextmanager
def observed_call(
    observer: Observer, tool: str, arguments: Mapping[str, Any]
) -> Iterator[RunningCall]:
    """Observe a call from its beginning to its end, whatever that is."""
    call, started = RunningCall(), time.perf_counter()
    try:
        yield call
    except BaseException as error:  # counted, however it ends, and raised again
        call.outcome = _code_of(error)
        raise
    finally:
        seconds = time.perf_counter() - started
        observer(Observation(tool, call.outcome, seconds, arguments, call.answer))


def observed_by(observer: Observer, tools: frozenset[str]) -> ServerMiddleware[Any]:
    """What a low-level server is given so that an observer sees its calls.

    Args:
        tools: the names that exist; a call of any other is observed as unknown.
    """

    async def observe(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in ("tools/call", "resources/read"):
            return await call_next(ctx)
        started, outcome, answer = time.perf_counter(), OK, None
        try:
            result = await call_next(ctx)
            outcome, answer = _read(result)
            return result
        except BaseException as error:  # counted, however it ends, and raised again
            outcome = _code_of(error)
            raise
        finally:
            seconds = time.perf_counter() - started
            name, arguments = _asked(ctx, tools)
            observer(Observation(name, outcome, seconds, arguments, answer))

    return observe


def _asked(
    ctx: ServerRequestContext[Any, Any], tools: frozenset[str]
) -> tuple[str, Mapping[str, Any]]:
    params = ctx.params or {}
    if ctx.method == "resources/read":
        return RESOURCE, {}
    name, arguments = params.get("name"), params.get("arguments")
    known = isinstance(name, str) and name in tools
    return str(name) if known else UNKNOWN, arguments if isinstance(arguments, dict) else {}


def _read(result: HandlerResult) -> tuple[str, Mapping[str, Any] | None]:
    """The outcome and the answer in what goes on the transport."""
    if not isinstance(result, dict):
        return _INTERNAL, None
    if result.get("isError"):
        return _code_in(result["content"][0].get("text", "")), None
    if "contents" in result:
        return OK, {"content": "\n\n".join(part.get("text", "") for part in result["contents"])}
    return OK, result.get("structuredContent")


def _code_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return _code_in(error.error.message) if isinstance(error, MCPError) else _INTERNAL


def _code_in(text: str) -> str:
    match = _CODE.match(text)
    return match[1] if match else _INTERNAL
