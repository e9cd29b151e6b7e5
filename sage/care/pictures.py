"""Figures as characters: a bar for a share, a line of blocks for a course."""

from collections.abc import Sequence

_STEPS = "▁▂▃▄▅▆▇█"
_PARTS = " ▏▎▍▌▋▊▉█"


def sparkline(values: Sequence[float]) -> str:
    """One character for each value, from the least to the greatest; a flat course stays low."""
    if not values:
        return ""
    least, most = min(values), max(values)
    if most == least:
        return _STEPS[0] * len(values)
    top = len(_STEPS) - 1
    return "".join(_STEPS[round((value - least) / (most - least) * top)] for value in values)


def bar(value: float, most: float, width: int = 20) -> str:
    """A bar as long as its share of the greatest value; what is not nothing is seen."""
    if value <= 0 or most <= 0:
        return ""
    eighths = max(1, round(min(value / most, 1.0) * width * 8))
    whole, part = divmod(eighths, 8)
    return _PARTS[8] * whole + (_PARTS[part] if part else "")
