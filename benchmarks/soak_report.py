"""What a soak saw, for people: a table in markdown and a picture that any browser shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

WIDTH, HEIGHT, LEFT, TOP = 760, 110, 90, 30


@dataclass(frozen=True)
class Sample:
    """What the process holds at a moment, and how long the calls since the last one took."""

    seconds: float
    megabytes: float
    files: int
    threads: int
    calls: int
    median_ms: float
    p99_ms: float


Measure = Callable[[Sample], float]
CURVES: tuple[tuple[str, Measure], ...] = (
    ("memory, MB", lambda one: one.megabytes),
    ("open files", lambda one: one.files),
    ("threads", lambda one: one.threads),
    ("median, ms", lambda one: one.median_ms),
    ("p99, ms", lambda one: one.p99_ms),
)


def tenths(samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The samples of each tenth of the time."""
    bounds = [len(samples) * part // 10 for part in range(11)]
    return [samples[start:end] for start, end in pairwise(bounds)]


def table(samples: Sequence[Sample]) -> str:
    """A line for each tenth of the time: the middle of its samples."""
    head = ["minutes", "calls", *(name for name, _ in CURVES)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for part in tenths(samples):
        if part:
            cells = [f"{part[-1].seconds / 60:.1f}", f"{sum(one.calls for one in part)}"]
            cells += [f"{median(map(measure, part)):.4g}" for _, measure in CURVES]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(samples: Sequence[Sample], title: str) -> str:
    """The curves, one below the other, as SVG."""
    height = TOP + len(CURVES) * (HEIGHT + 20)
    shapes = [_text(LEFT, 18, title)]
    for number, (name, measure) in enumerate(CURVES):
        shapes += _curve(samples, measure, name, TOP + number * (HEIGHT + 20))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{height}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
        + "".join(shapes)
        + "</svg>\n"
    )


def _curve(samples: Sequence[Sample], measure: Measure, name: str, top: int) -> list[str]:
    values = [measure(one) for one in samples]
    highest, last = max(values) * 1.1 or 1.0, samples[-1].seconds or 1.0
    points = " ".join(
        f"{LEFT + one.seconds / last * WIDTH:.1f},{top + HEIGHT * (1 - value / highest):.1f}"
        for one, value in zip(samples, values, strict=True)
    )
    bottom = top + HEIGHT
    frame = f'<path d="M{LEFT},{top}V{bottom}H{LEFT + WIDTH}" fill="none" stroke="#999"/>'
    line = f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>'
    marks = [_text(4, top + 12, name), _text(4, bottom, "0"), _text(4, top + 30, f"{highest:.4g}")]
    return [frame, line, *marks]


def _text(x: int, y: int, words: str) -> str:
    return f'<text x="{x}" y="{y}">{words}</text>'


def write_report(folder: Path, title: str, summary: str, samples: Sequence[Sample]) -> Path:
    """Write table and picture into a folder; where the table is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "soak.svg").write_text(picture(samples, title), "utf-8")
    page = folder / "soak.md"
    page.write_text(f"# {title}\n\n{summary}\n\n{table(samples)}\n\n![](soak.svg)\n", "utf-8")
    return page
