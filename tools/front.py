"""Frames per second against LUTs for networks of README, as docs/assets/front.svg: `python -m tools.front`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from math import log2
from pathlib import Path

import intloom
from intloom.common.atomic_write import write_text
from intloom.flow.networks import quantized_network

NETWORKS = {
    "YOLOv8n-cls, 224x224": ("yolov8n-cls", 224),
    "SSD with MobileNetV1, 300x300": ("ssd_mobilenet_v1", 300),
    "YOLOv8n, 320x320": ("yolov8n", 320),
}
SPACE = {"preset": "base", "rows": [8, 16, 32], "cols": [16, 64], "scratch_kib": 256, "weight_kib": 256, "strip": 64}
DEVICE, MHZ = "XC7K325T", 100.0
PICTURE = Path("docs/assets/front.svg")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 760, 420, 60, 210, 40
_COLORS = ("#2460c4", "#0f8f9e", "#8a45ad")
Points = Sequence[tuple[float, float]]
"""LUTs and frames per second of a front."""


def main() -> int:
    """Explore every network and draw all fronts."""
    fronts: dict[str, Points] = {}
    for label, (name, size) in NETWORKS.items():
        done = intloom.explore(quantized_network(name, size), SPACE, device=DEVICE, jobs=2, mhz=MHZ)
        fronts[label] = [(row["LUT"], row["fps"]) for row in done.rows() if row["front"]]
        print(label, fronts[label], flush=True)
    write_text(PICTURE, "\n".join(draw(fronts)))
    return 0


def draw(fronts: Mapping[str, Points]) -> Iterator[str]:
    """The picture: both axes are logarithmic."""
    points = [point for front in fronts.values() for point in front]
    low, high = (tuple(edge(axis) for axis in zip(*points, strict=True)) for edge in (min, max))

    def at(luts: float, fps: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * log2(luts / low[0]) / log2(high[0] / low[0])
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - 20) * log2(fps / low[1]) / log2(high[1] / low[1])
        return round(x, 1), round(y, 1)

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="#fff"/>'
    for exponent in range(1, 12):
        fps, luts = 2.0**exponent, 2.0**exponent * 1000
        if low[1] <= fps <= high[1]:
            _, y = at(low[0], fps)
            yield f'<path d="M{_LEFT} {y}H{right}" stroke="#ddd"/>{_text(_LEFT - 8, y + 4, f"{fps:g}", anchor="end")}'
        if low[0] <= luts <= high[0]:
            x, _ = at(luts, low[1])
            label = _text(x, bottom + 18, f"{luts / 1000:g} k", anchor="middle")
            yield f'<path d="M{x} 20V{bottom}" stroke="#ddd"/>{label}'
    yield _text(_LEFT, _HEIGHT - 6, "LUT, estimated, 7 series") + _text(4, 12, f"frames/s, forecast at {MHZ:g} MHz")
    for (label, front), color in zip(fronts.items(), _COLORS, strict=True):
        sites = [at(*point) for point in sorted(front)]
        line = " ".join(f"{x},{y}" for x, y in sites)
        yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in sites)
        yield _text(sites[-1][0] + 9, sites[-1][1] + 4, label, color)
    yield "</svg>\n"


def _text(x: float, y: float, words: str, color: str = "#444", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}">{words}</text>'


if __name__ == "__main__":
    sys.exit(main())
