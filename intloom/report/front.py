"""A picture of fronts: frames per second against area."""

from collections.abc import Iterator, Mapping, Sequence
from math import log2

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 760, 420, 60, 210, 40
_COLORS = ("#2460c4", "#0f8f9e", "#8a45ad", "#b3541e", "#3d7a2a", "#a8324a")
_LINE = 14
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

    def at(cells: float, fps: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * log2(cells / low[0]) / log2(high[0] / low[0])
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - 20) * log2(fps / low[1]) / log2(high[1] / low[1])
        return round(x, 1), round(y, 1)

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="#fff"/>\n'
    for exponent in range(1, 24):
        fps, cells = 2.0 ** (exponent - 4), 2.0**exponent * 1000
        if low[1] <= fps <= high[1]:
            _, y = at(low[0], fps)
            yield f'<path d="M{_LEFT} {y}H{right}" stroke="#ddd"/>{_text(_LEFT - 8, y + 4, f"{fps:g}", anchor="end")}\n'
        if low[0] <= cells <= high[0]:
            x, _ = at(cells, low[1])
            label = _text(x, bottom + 18, f"{cells / 1000:g} k", anchor="middle")
            yield f'<path d="M{x} 20V{bottom}" stroke="#ddd"/>{label}\n'
    yield _text(_LEFT, _HEIGHT - 6, area) + _text(4, 12, time)
    free = 0.0
    for number, (label, front) in enumerate(sorted(fronts.items(), key=lambda item: -max(p[1] for p in item[1]))):
        color, sites = _COLORS[number % len(_COLORS)], [at(*point) for point in sorted(front)]
        line = " ".join(f"{x},{y}" for x, y in sites)
        yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>\n'
        yield "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in sites)
        # Labels of fronts that end close together stand below each other.
        free = max(free, sites[-1][1] + 4)
        yield f"{_text(sites[-1][0] + 9, free, label, color)}\n"
        free += _LINE
    yield "</svg>\n"


def _text(x: float, y: float, words: str, color: str = "#444", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}">{words}</text>'
