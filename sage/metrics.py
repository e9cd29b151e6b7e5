"""What a server counts and times, in the text format that Prometheus reads.

Written by hand: the format is a page, and a library for it would keep its numbers in globals.
Label values come from fixed sets, so the number of series has a bound.
"""

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sage.observing import Observation

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]
Samples = Mapping[Labels, float]


class Counter:
    """Numbers that only grow, one for each combination of labels."""

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self._head = (name, about, "counter")
        self._labels = labels
        self._values: dict[Labels, float] = {}

    def add(self, *values: str, by: float = 1) -> None:
        """Count one more, or several."""
        self._values[values] = self._values.get(values, 0) + by

    def lines(self) -> Iterator[str]:
        """The family as text."""
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
        """The family as text."""
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


class Meters:
    """What a server counts and times of the requests and calls that come to it."""

    def __init__(self) -> None:
        self.requests = Counter(
            "sage_http_requests_total", "Requests by answer.", ("endpoint", "status")
        )
        self.calls = Counter("sage_calls_total", "Calls by end.", ("tool", "outcome"))
        self.seconds = Histogram("sage_call_seconds", "Time in a tool.", ("tool",))

    def observe(self, seen: Observation) -> None:
        """Count a call."""
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
