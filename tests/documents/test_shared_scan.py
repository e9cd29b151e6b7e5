"""Calls that arrive while a layer is walked share the next walk, and none misses an edit."""

import contextvars
import threading
import time
from pathlib import Path

import pytest

from sage.deadline import Deadline, arrived, no_deadline
from sage.documents.files import Rules, Walk
from sage.documents.walk import NO_WALK, SharedScan
from sage.errors import TimeoutExceeded
from tests.conftest import Base


def scan_result(complete: bool = True) -> Walk:
    rules = Rules(1, 1, lambda _: False)
    return Walk(Path(), "core", rules, no_deadline(), NO_WALK, (), complete=complete)


class Scanning:
    """A shared scan whose scans begin and end when the test says so."""

    def __init__(self, *, first_complete: bool = True) -> None:
        self.shared = SharedScan()
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.results: list[Walk] = []
        self._first_complete = first_complete

    def scan(self) -> Walk:
        self.begun.release()
        self.may_end.acquire()
        self.results.append(scan_result(self._first_complete or bool(self.results)))
        return self.results[-1]

    def start(self, answers: list[Walk]) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: answers.append(self.shared.run(self.scan, no_deadline()))
        )
        thread.start()
        return thread

    def wait_for(self, count: int) -> None:
        """Until so many callers wait for the next scan."""
        while len(self.shared._done._waiters) < count:  # type: ignore[attr-defined]
            pass


def test_callers_during_a_scan_share_the_next_one() -> None:
    scanning = Scanning()
    first: list[Walk] = []
    later: list[Walk] = []
    threads = [scanning.start(first)]
    scanning.begun.acquire()
    threads += [scanning.start(later) for _ in range(5)]
    scanning.wait_for(5)
    scanning.may_end.release(2)
    for thread in threads:
        thread.join()
    assert first == scanning.results[:1]
    assert len(scanning.results) == 2
    assert all(walk is scanning.results[1] for walk in later)


def test_a_call_that_waited_for_a_place_takes_a_scan_that_began_since_it_arrived() -> None:
    shared = SharedScan()
    waited, late = Deadline(), Deadline(60_000).part(0.5)
    walks = [scan_result(), scan_result()]
    first = shared.run(walks.pop, no_deadline())
    assert shared.run(walks.pop, waited) is first
    assert shared.run(walks.pop, late.earlier(1_000)) is first
    assert shared.run(walks.pop, no_deadline()) is not first
    assert not walks


def test_an_edit_after_a_call_arrived_may_wait_and_one_before_it_is_seen(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Before\n"})
    called = contextvars.copy_context()
    called.run(arrived.set, time.monotonic())
    assert knowledge.search("before")["results"]
    base.write({"core/a.md": "# After\n"})
    assert called.run(knowledge.search, "before")["results"]
    called.run(arrived.set, time.monotonic())
    assert called.run(knowledge.search, "after")["results"]


def test_scan_that_was_cut_short_is_not_shared() -> None:
    scanning = Scanning(first_complete=False)
    first: list[Walk] = []
    later: list[Walk] = []
    threads = [scanning.start(first)]
    scanning.begun.acquire()
    threads.append(scanning.start(later))
    scanning.wait_for(1)
    scanning.may_end.release(2)
    for thread in threads:
        thread.join()
    assert not first[0].complete
    assert later[0].complete


def test_waiting_for_a_scan_ends_with_the_deadline() -> None:
    scanning = Scanning()
    thread = scanning.start([])
    scanning.begun.acquire()
    with pytest.raises(TimeoutExceeded):
        scanning.shared.run(scanning.scan, Deadline(0))
    scanning.may_end.release()
    thread.join()


def test_scan_that_fails_does_not_block_the_next() -> None:
    shared = SharedScan()

    def fail() -> Walk:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        shared.run(fail, no_deadline())
    walk = scan_result()
    assert shared.run(lambda: walk, no_deadline()) is walk
