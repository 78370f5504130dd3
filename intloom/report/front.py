"""A picture of fronts: frames per second against area."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log2, log10

_WIDTH, _LEFT, _RIGHT, _BOTTOM = 860, 60, 290, 40
_COLORS = ("#2460c4", "#0f8f9e", "#8a45ad", "#b3541e", "#3d7a2a", "#a8324a")
_LINE = 15
_MIN_HEIGHT = 420
Points = Sequence[tuple[float, float]]
"""Area and frames per second of a front."""


def front_svg(fronts: Mapping[str, Points], area: str, time: str) -> str:
    """Fronts by name, with the labels of both axes, which are logarithmic."""
    return "".join(_draw(fronts, area, time))


def _draw(fronts: Mapping[str, Points], area: str, time: str) -> Iterator[str]:
    points = [point for front in fronts.values() for point in front]
    # A margin, so that a single point has a range too.
    low = [min(axis) / 1.1 for axis in zip(*points, strict=True)]
    high = [max(axis) * 1.1 for axis in zip(*points, strict=True)]
    height = max(_MIN_HEIGHT, 2 * _BOTTOM + _LINE * len(fronts))
    right, bottom = _WIDTH - _RIGHT, height - _BOTTOM

    def at(cells: float, fps: float) -> tuple[float, float]:
        x = _LEFT + (right - _LEFT) * log2(cells / low[0]) / log2(high[0] / low[0])
        y = bottom - (bottom - 20) * log2(fps / low[1]) / log2(high[1] / low[1])
        return round(x, 1), round(y, 1)

    box = f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="#fff"/>\n'
    for fps in _ticks(low[1], high[1]):
        _, y = at(low[0], fps)
        yield f'<path d="M{_LEFT} {y}H{right}" stroke="#ddd"/>{_text(_LEFT - 8, y + 4, f"{fps:g}", anchor="end")}\n'
    for cells in _ticks(low[0], high[0]):
        x, _ = at(cells, low[1])
        label = _text(x, bottom + 18, f"{cells / 1000:g} k", anchor="middle")
        yield f'<path d="M{x} 20V{bottom}" stroke="#ddd"/>{label}\n'
    yield _text(_LEFT, height - 6, area) + _text(4, 12, time)
    lines = sorted((([at(*p) for p in sorted(front)], label) for label, front in fronts.items()), key=_end)
    labels = zip(lines, _apart([_end(line) for line in lines], bottom), strict=True)
    for number, ((sites, label), y) in enumerate(labels):
        color, (x, end) = _COLORS[number % len(_COLORS)], sites[-1]
        line = " ".join(f"{x},{y}" for x, y in sites)
        yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>\n'
        yield "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in sites)
        yield f'<path d="M{x} {end}L{right + 14} {y}" stroke="{color}" stroke-width="0.7"/>\n'
        yield f"{_text(right + 18, y + 4, label, color)}\n"
    yield "</svg>\n"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range: 1, 2 and 5 times powers of ten, and more in a range of less than a decade."""
    steps = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 7)
    values = (step * 10.0**exponent for exponent in range(floor(log10(low)), ceil(log10(high))) for step in steps)
    return [value for value in values if low <= value <= high]


def _end(line: tuple[list[tuple[float, float]], str]) -> float:
    """The height of a line's last point."""
    return line[0][-1][1]


def _apart(heights: Sequence[float], bottom: float) -> list[float]:
    """Ascending heights of labels, moved down and then up until no two of them overlap."""
    moved: list[float] = []
    for y in heights:
        moved.append(max(y, moved[-1] + _LINE) if moved else y)
    limit = bottom
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - _LINE
    return moved


def _text(x: float, y: float, words: str, color: str = "#444", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}">{words}</text>'
