"""Texts that make a regular expression slow, made from its own structure.

Backtracking needs a repeat whose text can be divided in many ways and an end that does not match.
So every repeat of a pattern is reached by the shortest text that leads to it, filled with each kind
of character the pattern knows, and ended by something else; alone, and again and again.
"""

import gc
import re
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

parser = re._parser  # type: ignore[attr-defined]
constants = re._constants  # type: ignore[attr-defined]

REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
ENDS = ("", "!\n")
BLOCKS = (1, 60)
LONG_REPEAT = 8
MOST_CHARACTERS = 8
MOST_PAIRED = 5
MOST_SAMPLE = 200
CATEGORIES = {
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_SPACE: " \n",
    constants.CATEGORY_WORD: "a_",
    constants.CATEGORY_NOT_DIGIT: "a",
    constants.CATEGORY_NOT_SPACE: "a.",
    constants.CATEGORY_NOT_WORD: "- ",
}
ANYTHING = "a 1-_.`>#*/:=\n<(["


def inputs(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Texts of about a size that a pattern may take long for."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    characters = "".join(dict.fromkeys(_characters(tree)))[:MOST_CHARACTERS]
    seen: set[tuple[str, str]] = set()
    for prefix, pumps in _repeats(tree, ""):
        for pump in (*pumps, *characters):
            if pump and (prefix, pump) not in seen:
                seen.add((prefix, pump))
                yield from _texts(prefix, pump, size)
    for first in characters[:MOST_PAIRED]:
        for second in characters[:MOST_PAIRED]:
            yield (first + second) * (size // 2) + "!"
    for sample in _samples(tree):
        if sample:
            yield sample * (size // len(sample))
            yield (sample[:-1] or sample) * (size // len(sample))


def _texts(prefix: str, pump: str, size: int) -> Iterator[str]:
    for end in ENDS:
        yield prefix + pump * (size // len(pump)) + end
    for block in BLOCKS:
        piece = prefix + pump * block
        yield piece * (size // len(piece))
    yield (piece + "\n") * (size // (len(piece) + 1))


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Each long repeat: the shortest text that leads to it, and what it repeats."""
    for operator, argument in tree:
        if operator in REPEATS:
            _, most, item = argument
            if most > LONG_REPEAT:
                # Its own beginning inside each turn makes every turn a place to begin at.
                filled = "".join(_filled(node, before) for node in item)
                yield before, [*_samples(item), *_one_each(item), filled]
            yield from _repeats(item, before)
        else:
            for inner in _inner(operator, argument):
                yield from _repeats(inner, before)
        before += next(_samples_of(operator, argument), "")


def _inner(operator: Any, argument: Any) -> list[Any]:
    if operator is constants.SUBPATTERN:
        return [argument[-1]]
    if operator is constants.BRANCH:
        return list(argument[1])
    if operator in (constants.ASSERT, constants.ASSERT_NOT):
        return [argument[1]]
    if operator is constants.ATOMIC_GROUP:
        return [argument]
    return []


def _filled(node: Any, filler: str) -> str:
    """A short text that matches, with a filler where anything may stand."""
    operator, argument = node
    if operator in REPEATS and argument[1] > LONG_REPEAT and argument[2]:
        inner, kind = argument[2][0]
        is_free = inner in (constants.ANY, constants.NOT_LITERAL)
        if is_free or (inner is constants.IN and kind[0][0] is constants.NEGATE):
            return filler
    return next(_samples_of(operator, argument), "")


def _one_each(item: Any) -> list[str]:
    """The characters of a repeated class, one by one."""
    return list(dict.fromkeys(_characters(item)))[:MOST_CHARACTERS]


def _samples(tree: Any) -> Iterator[str]:
    """Short texts that match, one for each way of the first choice."""
    yield "".join(next(_samples_of(*node), "") for node in tree)[:MOST_SAMPLE]
    for at, (operator, argument) in enumerate(tree):
        if operator in (constants.BRANCH, constants.SUBPATTERN):
            head = "".join(next(_samples_of(*node), "") for node in tree[:at])
            tail = "".join(next(_samples_of(*node), "") for node in tree[at + 1 :])
            for middle in _samples_of(operator, argument):
                yield (head + middle + tail)[:MOST_SAMPLE]
            return


def _samples_of(operator: Any, argument: Any) -> Iterator[str]:
    if operator in REPEATS:
        least, _, item = argument
        for sample in _samples(item):
            yield (sample * min(least or 1, MOST_SAMPLE))[:MOST_SAMPLE]
    elif operator in (constants.ASSERT, constants.ASSERT_NOT, constants.AT, constants.GROUPREF):
        yield ""
    elif inner := _inner(operator, argument):
        for tree in inner:
            yield from _samples(tree)
    else:
        yield from _characters([(operator, argument)])


def _characters(tree: Any) -> Iterator[str]:
    """A character of each kind that a pattern speaks of."""
    for operator, argument in tree:
        if operator is constants.LITERAL:
            yield chr(argument)
        elif operator is constants.NOT_LITERAL:
            yield "a" if argument != ord("a") else "b"
        elif operator is constants.ANY:
            yield from "a "
        elif operator is constants.IN:
            yield from _class(argument)
        elif operator in REPEATS:
            yield from _characters(argument[2])
        else:
            for inner in _inner(operator, argument):
                yield from _characters(inner)


def _class(parts: Any) -> Iterator[str]:
    if parts[0][0] is constants.NEGATE:
        text = "[^" + re.escape("".join(_class(parts[1:]))) + "]"
        yield from (c for c in ANYTHING if re.match(text, c))
        return
    for operator, argument in parts:
        if operator is constants.LITERAL:
            yield chr(argument)
        elif operator is constants.RANGE:
            yield chr(argument[0])
        elif operator is constants.CATEGORY:
            yield from CATEGORIES.get(argument, "")


class TooLong(Exception):
    """A match took more processor time than it may."""


def processor_seconds(run: Callable[[], object], limit: float) -> float:
    """The time of this process that a call takes; the limit when it takes longer.

    The matcher looks for signals while it works, so a timer of processor time can end it. The
    collector rests meanwhile: what others left behind is not this call's time, and an exception
    that the timer raises inside one of its callbacks would be lost.
    """

    def stop(_: int, __: FrameType | None) -> None:
        raise TooLong

    gc.disable()
    before = signal.signal(signal.SIGVTALRM, stop)
    start = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        run()
    except TooLong:
        return limit
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
    return time.process_time() - start
