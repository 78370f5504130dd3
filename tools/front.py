"""Frames per second against LUTs for the networks of README, as docs/assets/front.svg: `make front`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.compiler.program.program import MemoryTiming
from intloom.exploration.device import device_of
from intloom.exploration.points import Task, pooled, read_network
from intloom.exploration.space import device_space, space_of
from intloom.flow.networks import quantized_network
from intloom.hw.area.model import area_of, total
from intloom.hw.spec.params import HardwareParams
from intloom.report.front import front_svg
from intloom.sim.processes import Processes
from tools.figures import ROWS

NETWORKS = {(row.network, row.imgsz): row.label for row in reversed(ROWS)}
"""Labels of networks and sizes; reversed, because the first row of several has the label of the network alone."""
SPACE = {"preset": "base", "rows": [8, 16, 32], "cols": [16, 32], "scratch_kib": 256, "weight_kib": 256, "strip": 64}
DEVICE, MHZ = device_of("XC7K325T"), 100.0
PICTURE = Path("docs/assets/front.svg")


def configurations() -> dict[HardwareParams, float]:
    """The configurations that fit the device, with their LUTs."""
    points, _ = device_space(space_of(SPACE), DEVICE.family).points()
    cells = {params: total(area_of(params, DEVICE.family)) for params in points}
    return {p: used["LUT"] for p, used in cells.items() if all(used[k] <= n for k, n in DEVICE.cells.items())}


def rates(model: Path, points: Sequence[HardwareParams]) -> Iterator[tuple[HardwareParams, float]]:
    """Frames per second of a network on each configuration for which it compiles."""
    tasks = [Task(params, MemoryTiming()) for params in points]
    for task, outcome in pooled([read_network(model, 1.0, points, {})]).results(tasks, Processes(2)):
        for work in outcome.works:
            yield task.params, MHZ * 1e6 / work.cycles.total


def main() -> int:
    """Forecast every network and draw all fronts."""
    fronts, luts = {}, configurations()
    for (name, size), label in NETWORKS.items():
        points = [(luts[params], fps) for params, fps in rates(quantized_network(name, size), [*luts])]
        fronts[label] = [(x, y) for x, y in points if not any(a <= x and b > y for a, b in points)]
        print(label, fronts[label], flush=True)
    write_text(PICTURE, front_svg(fronts, "LUT, estimated, 7 series", f"frames/s, forecast at {MHZ:g} MHz"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
