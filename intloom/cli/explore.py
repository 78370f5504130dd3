"""`intloom explore`: which accelerator fits models and a budget."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from intloom.cli.area import DeviceName
from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import Dims, parse_dims, subcommand
from intloom.common.errors import ExitCode, UsageError
from intloom.exploration.device import device_of
from intloom.exploration.energy import choose_technology, technology_table
from intloom.exploration.explore import Budget, Exploration, explore, misses_of
from intloom.exploration.space import device_space, read_space
from intloom.exploration.verify import Verified, verify
from intloom.files import check_folder, write_text
from intloom.hw.area.components import KINDS
from intloom.report.exploration import write_exploration
from intloom.sim.processes import Processes

_HELP = """Choose an accelerator: forecast many configurations for quantized models, with area, traffic and energy.

A space is a TOML file: a preset, and for each field a value or a list of values; sample = N draws N points. Several
models weigh together: a frame is one run of each, or as many as --weight says. Forecasts are kept in the cache, so an
interrupted exploration resumes. Cycles are the compiler's forecast, clocks are measured on the nearest routed design,
area and energy are estimates. The output folder has the page, JSON, CSV, and the TOML of each configuration of the
front for --config. The exit code is 5 if no configuration fits.

Examples:

[bold]intloom explore yolov8n.q.onnx --device XC7Z020 --fps 10 --bandwidth 400 --jobs 2[/bold]

[bold]intloom explore a.q.onnx b.q.onnx --weight 1 --weight 10 --device asic --space space.toml --verify 2[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    device: DeviceName = "LFE5U-85F"
    fps: Annotated[float | None, typer.Option(metavar="N", help="Frames per second that are needed.")] = None
    bandwidth: Annotated[
        float | None, typer.Option(metavar="MB/S", help="Bandwidth of the memory port. Default: a word per cycle.")
    ] = None
    latency: Annotated[int, typer.Option(metavar="CYCLES", min=0, help="Memory read latency.")] = 100
    clock: Annotated[
        float | None, typer.Option(metavar="MHZ", help="Clock. Default: that of the nearest routed design.")
    ] = None
    space: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Configurations to try.")] = None
    weight: Annotated[
        list[float] | None, typer.Option(metavar="N", help="Runs of each model in a frame, in their order. Repeatable.")
    ] = None
    accelerators: Annotated[
        int, typer.Option(metavar="N", min=1, max=4, help="Accelerators on one memory port, each with own frames.")
    ] = 1
    technology: Annotated[
        str, typer.Option(metavar="NAME|FILE.toml", help="Energy figures; `list` prints the tables.")
    ] = "45nm"
    verify: Annotated[int, typer.Option(metavar="N", min=0, help="Run the N best configurations in RTL.")] = 0
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes on this machine.")] = 1
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler to run on.")] = None
    dim: Dims = None
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Output folder.")] = Path("out/explore")
    hardware: HardwareOptions


@subcommand("explore", _HELP)
def _run(
    terminal: Terminal,
    given: _Options,
    models: Annotated[list[Path] | None, typer.Argument(metavar="MODEL.onnx…", help="Quantized models.")] = None,
) -> None:
    if given.technology == "list":
        terminal.result(technology_table())
        return
    if not models:
        raise UsageError("explore needs a model")
    budget, where = _budget(given), Processes(given.jobs, given.dask)
    hardware = given.hardware
    space = device_space(read_space(given.space, hardware.chosen, hardware.named), budget.device.family)
    check_folder(given.output, "output")
    dims = parse_dims(given.dim)
    with terminal.progress() as tell:
        done = explore(_weighted(models, given.weight), space, budget, dims=dims, where=where, tell=tell)
        if given.verify:
            # The RTL may fail or be interrupted.
            _write(done, [], given.output)
        verified = verify(done, models, given.verify, dims, tell)
    page = _write(done, verified, given.output)
    result = {**done.to_dict(), "verified": [v.to_dict() for v in verified], "page": str(page)}
    terminal.give(result, lambda: _show(terminal, done, verified, page))
    if not all(v.equal for v in verified):
        raise typer.Exit(int(ExitCode.MISMATCH))
    if not done.front:
        raise typer.Exit(int(ExitCode.BAD_PARAMETERS))


def _budget(given: _Options) -> Budget:
    return Budget(
        device=device_of(given.device),
        technology=choose_technology(given.technology),
        fps=given.fps,
        bandwidth=given.bandwidth,
        latency=given.latency,
        mhz=given.clock,
        accelerators=given.accelerators,
    )


def _weighted(models: list[Path], weights: list[float] | None) -> list[tuple[Path, float]]:
    if weights is not None and len(weights) != len(models):
        raise UsageError(f"--weight must be given once for each of the {len(models)} models, not {len(weights)} times")
    if any(not 0 < weight < math.inf for weight in weights or ()):
        raise UsageError("--weight must be a number above 0")
    return list(zip(models, weights or [1.0] * len(models), strict=True))


def _write(done: Exploration, verified: list[Verified], folder: Path) -> Path:
    """Write all files; the page is the last."""
    for old in folder.glob("point*.toml"):
        old.unlink()
    for number, point in enumerate(done.front, 1):
        write_text(folder / f"point{number}.toml", point.params.to_toml())
    write_text(folder / "points.csv", done.to_csv())
    record = {**done.to_dict(), "verified": [v.to_dict() for v in verified]}
    write_text(folder / "points.json", json.dumps(record, indent=1))
    return write_exploration(record, folder)


def _show(terminal: Terminal, done: Exploration, verified: list[Verified], page: Path) -> None:
    kinds = KINDS[done.budget.device.family]
    if done.front:
        terminal.table(_table(done, kinds))
    for number, point in enumerate(done.front, 1):
        terminal.say(f"{number}: {done.why(point)}")
    for point in done.misses:
        terminal.say(f"{done.name(point)} misses: {', '.join(misses_of(point))}", label="does not fit", color="red")
    if done.unused:
        terminal.say(f"no model uses {', '.join(done.unused)}: false in all configurations")
    if done.refused:
        name, reason = next(iter(done.refused.items()))
        terminal.say(f"{len(done.refused)} configurations left out, for example {name}: {reason}")
    for v in verified:
        state = "all bytes equal" if v.equal else f"{v.mismatches} bytes DIFFER"
        terminal.say(f"{v.name}, {v.network}: {v.cycles:,} cycles in RTL, forecast {v.error:+.2%}, {state}")
    asked, clocks = done.budget, dict.fromkeys(point.clock.source for point in done.points)
    terminal.say(f"MHz: {'; '.join(clocks)}")
    terminal.say(
        f"{len(done.points)} configurations, {len(done.front)} on the front; frames/s are forecast, "
        f"{', '.join(kinds)} and µJ ({asked.technology.name}: {asked.technology.source}) are estimates"
    )
    terminal.result(str(page))


def _table(done: Exploration, kinds: tuple[str, ...]) -> Table:
    table = new_table("", "configuration", ">frames/s", ">MHz", *(f">{k}" for k in kinds), ">KiB", ">MB/frame", ">µJ")
    for number, row in enumerate(done.rows()[: len(done.front)], 1):
        table.add_row(str(number), row["name"], *_cells(row, kinds))
    return table


def _cells(row: dict[str, Any], kinds: tuple[str, ...]) -> list[str]:
    return [
        f"{row['fps']:.2f}",
        f"{row['mhz']:g}",
        *(f"{row.get(kind, 0):,}" for kind in kinds),
        str(row["memory_kib"]),
        f"{row['dram_bytes'] / 1e6:.2f}",
        f"{row['energy_uj']:,.0f}",
    ]
