import contextvars
import threading
from collections.abc import Callable
from functools import partial

import pytest

from sage.cache import Cache, bytes_of, owner
from sage.deadline import Deadline, no_deadline
from sage.errors import TimeoutExceeded
from tests.conftest import Clock


def value(word: str, keep: bool = True) -> Callable[[], tuple[str, bool]]:
    return lambda: (word, keep)


def kept(number: int) -> tuple[int, bool]:
    return number, True


def test_second_question_is_answered_from_the_cache(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    assert cache.enabled is True
    assert cache.remember("key", value("one"), no_deadline()) == ("one", False)
    assert cache.remember("key", value("two"), no_deadline()) == ("one", True)


def test_value_is_computed_again_when_its_time_is_over(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    cache.remember("key", value("one"), no_deadline())
    clock.tick(59)
    assert cache.remember("key", value("two"), no_deadline()) == ("one", True)
    clock.tick(1)
    assert cache.remember("key", value("two"), no_deadline()) == ("two", False)


def test_value_that_may_not_be_kept_is_computed_again(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    cache.remember("key", value("one", keep=False), no_deadline())
    assert cache.peek("key") is None
    assert cache.remember("key", value("two"), no_deadline()) == ("two", False)


def test_time_to_live_of_zero_keeps_nothing(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 0, clock)
    cache.put("key", "one")
    assert not cache.enabled
    assert cache.peek("key") is None
    assert cache.remember("key", value("two"), no_deadline()) == ("two", False)


def test_cache_never_holds_more_than_its_size(clock: Clock) -> None:
    cache: Cache[str] = Cache(3, 60, clock)
    for number in range(10):
        cache.put(number, str(number))
    assert [key for key in range(10) if cache.peek(key)] == [7, 8, 9]


def test_hit_rate_is_the_measured_share(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    assert cache.hit_rate == 0.0
    for key in ("a", "a", "a", "b"):
        cache.remember(key, value("x"), no_deadline())
    cache.peek("a")
    assert (cache.hits, cache.misses, cache.hit_rate) == (2, 2, 0.5)


def test_error_reaches_its_caller_and_the_next_one_computes_anew(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)

    def fail() -> tuple[str, bool]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.remember("key", fail, no_deadline())
    assert cache.remember("key", value("one"), no_deadline()) == ("one", False)


def test_twenty_threads_compute_one_value_once(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    computed: list[int] = []
    answers: list[tuple[str, bool]] = []
    started = threading.Barrier(20)

    def compute() -> tuple[str, bool]:
        computed.append(1)
        while len(cache._ready._waiters) < 19:  # type: ignore[attr-defined]
            pass  # until everybody else waits for this
        return "one", True

    def ask() -> None:
        started.wait()
        answers.append(cache.remember("key", compute, no_deadline()))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert sorted(answers) == [("one", False)] + [("one", True)] * 19
    assert (cache.hits, cache.misses) == (19, 1)


def test_waiting_for_another_thread_ends_with_the_deadline(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock)
    computing, done = threading.Event(), threading.Event()

    def compute() -> tuple[str, bool]:
        computing.set()
        done.wait(300)
        return "one", True

    other = threading.Thread(target=cache.remember, args=("key", compute, no_deadline()))
    other.start()
    computing.wait(300)
    with pytest.raises(TimeoutExceeded, match="no answer within 0 ms"):
        cache.remember("key", value("two"), Deadline(0))
    assert cache.remember("other", value("free"), Deadline(0)) == ("free", False)
    done.set()
    other.join()
    assert cache.remember("key", value("two"), no_deadline()) == ("one", True)


def test_threads_that_come_and_go_leave_the_cache_whole(clock: Clock) -> None:
    cache: Cache[int] = Cache(5, 60, clock)

    def work(seed: int) -> None:
        for number in range(300):
            key = (seed * number) % 11
            assert cache.remember(key, partial(kept, key + 1), no_deadline())[0] == key + 1

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.hits + cache.misses == 8 * 300


def test_values_have_their_own_size_and_one_too_large_is_not_kept(clock: Clock) -> None:
    cache: Cache[str] = Cache(10, 60, clock, len)
    cache.put("a", "x" * 6)
    cache.put("b", "x" * 6)
    assert cache.peek("a") is None
    assert cache.peek("b") == "x" * 6
    assert cache.remember("c", value("x" * 11), no_deadline()) == ("x" * 11, False)
    assert cache.peek("c") is None


def test_a_cache_never_takes_more_than_its_bytes(clock: Clock) -> None:
    cache: Cache[str] = Cache(100_000, 60, clock, bytes_of)
    for number in range(1_000):
        cache.put(("get", number), "x" * (number * 7 % 10_000))
        assert cache._values.currsize <= 100_000
    assert cache._values.currsize > 50_000


def test_a_value_that_would_take_the_room_of_many_is_not_kept(clock: Clock) -> None:
    cache: Cache[str] = Cache(100_000, 60, clock, bytes_of, largest=12_500)
    cache.put("small", "x")
    assert cache.remember("large", value("x" * 50_000), no_deadline()) == ("x" * 50_000, False)
    assert cache.peek("large") is None
    assert cache.peek("small") == "x"


def test_a_bound_in_bytes_does_not_lift_the_one_in_number(clock: Clock) -> None:
    cache: Cache[str] = Cache(100_000, 60, clock, bytes_of, most_values=4)
    for number in range(10):
        cache.put(number, "x")
    assert sum(cache.peek(number) is not None for number in range(10)) == 4


def test_one_owner_fills_no_more_than_half(clock: Clock) -> None:
    cache: Cache[str] = Cache(100_000, 60, clock, bytes_of, owner_most=50_000)

    def fill(name: str, count: int) -> None:
        owner.set(name)
        for number in range(count):
            cache.put((name, number), "x" * 5_000)

    contextvars.copy_context().run(fill, "modest", 5)
    contextvars.copy_context().run(fill, "greedy", 1_000)
    assert all(cache.peek(("modest", number)) for number in range(5))
    assert cache.peek(("greedy", 999))
    contextvars.copy_context().run(fill, "third", 5)
    assert all(cache.peek(("modest", number)) for number in range(5))


def test_all_that_a_value_holds_is_counted_once() -> None:
    text = "x" * 10_000
    assert 10_000 < bytes_of({"a": [text, text], "b": (text,)}) < 12_000
    assert bytes_of([text, "y" * 10_000]) > 20_000
