"""`intloom bench`: simulation speed of the benches, run time of networks, and error of the cycle prediction."""

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import subcommand
from intloom.common.errors import MismatchError, UsageError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.files import check_output, write_text
from intloom.flow.networks import load_network
from intloom.hw.spec.params import HardwareParams, preset_name
from intloom.sim.backend import GoldenBackend, RtlBackend
from intloom.sim.bench.baseline import read_baseline
from intloom.sim.bench.compare import compare_benches
from intloom.sim.bench.measure import Speed
from intloom.sim.compare import compare
from intloom.sim.forecast_error import compare_forecast, worst
from intloom.sim.regress.case import Network
from intloom.sim.result import RunResult
from intloom.sim.rtl.job import MemorySettings
from intloom.zoo import ZOO

_HELP = """Measure simulated cycles per second of the bare C++ loop and of the bench that runs networks. Then run
networks from the start bit to the checked result, and compare the predicted cycles of every layer with the measured
ones. A prediction error above --within ends with exit code 1. --baseline compares the bare loop with that of an earlier
version, in alternate runs.

Examples:

[bold]intloom bench[/bold]

[bold]intloom bench --network yolov8n@640 --fresh -o out/bench/speed.json[/bold]
"""
_SHORT_LAYER, _SMALL_SHARE = 4000, 0.001
"""Shorter layers, in cycles or as a share of the run, count only in the total."""
_NETWORKS = ("yolov8n@160", "yolov8n@320", "yolov8n@416", "yolov8n@640")


def _network_words() -> list[str]:
    return [f"{e.name}@{e.default_size}" for e in ZOO.values()]


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME@SIZE",
            help="Network of the zoo and image size. Repeatable. Default: four networks.",
            autocompletion=_network_words,
        ),
    ] = None
    hardware: HardwareOptions
    within: Annotated[float, typer.Option(metavar="PERCENT", help="Largest prediction error of a layer.")] = 3.0
    fresh: Annotated[bool, typer.Option("--fresh", help="Rebuild all simulators, and measure the build time.")] = False
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="npu.v of an earlier version of the same hardware, or a folder that tools.baseline wrote.",
        ),
    ] = None
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="JSON file for the results.")] = Path(
        "out/bench/speed.json"
    )


@subcommand("bench", _HELP)
def _run(
    terminal: Terminal,
    given: _Options,
) -> None:
    params = given.hardware.params
    if not 0 <= given.within < math.inf:
        raise UsageError(f"--within must be a finite percentage of at least 0, not {given.within}")
    check_output(given.output)
    earlier = None if given.baseline is None else read_baseline(given.baseline)
    networks = [(word, _load(word)) for word in given.network or _NETWORKS]
    with _simulators(given.fresh):
        speeds = []
        for speed in compare_benches(params, earlier):
            speeds.append(speed)
            terminal.say(f"{speed.bench}: {speed.hertz:,.0f} cycles/s")
            if speed.stopped:
                terminal.say("clock stopped: " + ", ".join(f"{n} {s:.1%}" for n, s in speed.stopped.items()))
        timed = [_time(terminal, word, found, params) for word, found in networks]
    record = {"preset": preset_name(params), "benches": _rows(speeds), "networks": timed}
    write_text(given.output, json.dumps(record, indent=1))
    terminal.give(record, lambda: _show(terminal, record))
    _require_forecast(record, given.within)


def _load(word: str) -> Network:
    name, _, size = word.partition("@")
    if not size.isdecimal():
        raise UsageError(f"network must be NAME@SIZE such as yolov8n@320, not {word!r}")
    return load_network(name, int(size))


@contextmanager
def _simulators(fresh: bool) -> Iterator[None]:
    """Use the cache, or with `fresh` an empty temporary cache."""
    if not fresh:
        yield
        return
    before = os.environ.get("INTLOOM_CACHE")
    with temporary_folder("intloom-bench-") as folder:
        os.environ["INTLOOM_CACHE"] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ["INTLOOM_CACHE"]
            else:
                os.environ["INTLOOM_CACHE"] = before


def _time(terminal: Terminal, word: str, network: Network, params: HardwareParams) -> dict[str, Any]:
    """One network on the fast bench: from the start bit to the comparison of the outputs with the golden model."""
    program = compile_graph(network.graph, params)
    golden = GoldenBackend(network.graph).run(program, network.inputs)
    result = RtlBackend().run(program, network.inputs)
    started = time.monotonic()
    comparison = compare(golden.outputs, result.outputs)
    comparison.require_equal()
    wall_s = result.wall_s + time.monotonic() - started
    terminal.say(f"{word}: {result.cycles:,} cycles in {wall_s:.1f} s")
    counts = {key: getattr(result, key) for key in ("cycles", "macs", "vector_macs", "mac_use", "sim_hz")}
    figures = {"network": word, "wall_s": wall_s, **counts}
    expected = _forecast(program, result)
    terminal.say(f"{word}: predicted {expected['cycles']:,} cycles, {_furthest(expected)}")
    return {**figures, "compared_bytes": comparison.compared_bytes, "build_s": result.build_s, "forecast": expected}


def _forecast(program: Program, result: RunResult) -> dict[str, Any]:
    """Predicted and measured cycles in total and per chain of layers, and the chain with the largest error."""
    whole, chains = compare_forecast(program, result, MemorySettings())
    furthest = worst(chains, max(_SHORT_LAYER, int(result.cycles * _SMALL_SHARE)))
    return {
        "cycles": whole.expected,
        "error": whole.error,
        "chains": [{**asdict(chain), "error": chain.error} for chain in chains],
        "worst": {**asdict(furthest), "error": furthest.error} if furthest is not None else None,
    }


def _furthest(expected: dict[str, Any]) -> str:
    off = f"{100 * expected['error']:+.2f} %"
    worst = expected["worst"]
    return f"{off}; at most {100 * worst['error']:+.2f} % in {worst['name']}" if worst is not None else off


def _require_forecast(record: dict[str, Any], within: float) -> None:
    for row in record["networks"]:
        worst = row["forecast"]["worst"]
        if worst is not None and abs(worst["error"]) * 100 > within:
            raise MismatchError(
                f"{row['network']}: cycles of {worst['name']} must be within {within:g} % of {worst['measured']}, "
                f"but {worst['expected']} are predicted; recalibrate the cost model"
            )


def _rows(speeds: list[Speed]) -> list[dict[str, Any]]:
    bare = speeds[0].hertz
    return [
        {
            "bench": s.bench,
            "hertz": s.hertz,
            "of_bare": s.hertz / bare,
            "cycles": s.cycles,
            "build_s": s.build_s,
            "clock_stopped": dict(s.stopped),
        }
        for s in speeds
    ]


def _show(terminal: Terminal, record: dict[str, Any]) -> None:
    table = new_table("bench", ">cycles/s", ">of bare", ">build")
    for row in record["benches"]:
        built = f"{row['build_s']:.0f} s" if row["build_s"] else "cached"
        table.add_row(row["bench"], f"{row['hertz']:,.0f}", f"{row['of_bare']:.3f}", built)
    terminal.table(table)
    table = new_table("network", ">cycles", ">seconds", ">cycles/s", ">bytes equal", "prediction error")
    for row in record["networks"]:
        figures = (f"{row['cycles']:,}", f"{row['wall_s']:.1f}", f"{row['sim_hz']:,.0f}", f"{row['compared_bytes']:,}")
        table.add_row(row["network"], *figures, _furthest(row["forecast"]))
    terminal.table(table)
    table = new_table("layers", ">cycles", ">predicted", ">error")
    for chain in (k for row in record["networks"] for k in row["forecast"]["chains"]):
        cells = (f"{chain['measured']:,}", f"{chain['expected']:,}", f"{100 * chain['error']:+.2f} %")
        table.add_row(chain["name"], *cells)
    terminal.table(table)
