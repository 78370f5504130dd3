"""`intloom run`: run a program and prove its results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from intloom.arrays import Array
from intloom.cli.console import Tell, Terminal, new_table
from intloom.cli.options import AsJson, check_least, choice, grouped, terminal_of
from intloom.common.errors import ExitCode, UsageError
from intloom.compiler.program.program import Program
from intloom.files import check_folder
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.host import HostSide
from intloom.flow.inputs import read_inputs
from intloom.flow.record import make_record, save_run
from intloom.flow.regions import all_inputs
from intloom.flow.running import execute, input_shapes, locate, open_backend, open_host
from intloom.flow.slicing import block_pieces, run_pieces, slices_record, tile_pieces
from intloom.sim.backend import BACKENDS, BackendKind, backend_kind, open_rtl
from intloom.sim.compare.divergence import Divergence
from intloom.sim.result import Progress, ProgressCallback, RunResult
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import BENCHES, RtlOptions, bench_kind

_HELP = """Run a program on the golden model, the instruction simulator or the RTL.

With --check the results are compared byte for byte with the golden model and with onnxruntime; exit code 0 only when
everything compared was equal, 1 otherwise.

Examples:

[bold]intloom run yolov8n.loom --backend rtl --check -o out/run[/bold]

[bold]intloom run yolov8n.loom --backend isa --input bus.jpg --json[/bold]

[bold]intloom run yolov8n.loom --layers "model.4.*" --jobs 2[/bold]
"""


if TYPE_CHECKING:
    BackendName = str
    BenchName = str
else:
    BackendName, BenchName = choice("BackendName", BACKENDS), choice("BenchName", BENCHES)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What runs, on which inputs, and what is kept."""

    backend: Annotated[BackendName, typer.Option(help="What runs it.")] = "rtl"
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="[NAME=]FILE", help=".npy, .npz, PNG or JPEG; else a seeded image. Repeat."
        ),
    ] = None
    check: Annotated[bool, typer.Option("--check", help="Compare with golden model and onnxruntime.")] = False
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUNDIR", help="Keep outputs and record.")
    ] = None
    model: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="The model, if not beside the program.")] = (
        None
    )
    seed: Annotated[int, typer.Option(metavar="S", help="For the input and for memory stalls.")] = 0

    @property
    def kind(self) -> BackendKind:
        """The chosen backend."""
        return backend_kind(self.backend)


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """How the simulated memory behaves, and when the run is given up."""

    latency: Annotated[int, typer.Option(metavar="CYCLES", help="RTL: read latency of the memory.")] = (
        MemorySettings.read_latency
    )
    bandwidth: Annotated[
        float, typer.Option(metavar="BEATS", help="RTL: beats a cycle, reads and writes together; 0 is all.")
    ] = MemorySettings.bandwidth
    stalls: Annotated[int, typer.Option(metavar="N", help="RTL: chance of a bus pause, in thousandths.")] = 0
    limit: Annotated[int | None, typer.Option(metavar="CYCLES", help="RTL: give up after this many.")] = None

    def settings(self, seed: int) -> MemorySettings:
        """The memory model's settings."""
        return MemorySettings(
            read_latency=self.latency, bandwidth=self.bandwidth, stall_permille=self.stalls, seed=seed
        )


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """Which simulator runs which Verilog."""

    verilog: Annotated[Path | None, typer.Option(metavar="FILE", help="RTL: simulate this npu.v instead.")] = None
    bench: Annotated[
        BenchName, typer.Option(help="RTL: fast; detailed checks every bus cycle; icarus is a second simulator.")
    ] = "fast"
    waves: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="RTL: waves around the first wrong write; on the detailed bench, of all."),
    ] = None

    @property
    def waves_of_whole_run(self) -> Path | None:
        """The folder for waves, if the bench records those of the whole run."""
        return self.waves if bench_kind(self.bench).waves == "whole run" else None


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Layers that run alone."""

    layers: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="RTL: only layers such as model.4.*, each block alone.")
    ] = None
    tile: Annotated[
        int | None, typer.Option(metavar="N", help="With --layers: only tile N of each, instruction by instruction.")
    ] = None
    jobs: Annotated[int, typer.Option(metavar="N", help="With --layers: blocks at once.")] = 1


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command("run", help=_HELP)(grouped(_run))


def _run(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    run: RunOptions,
    memory: MemoryOptions,
    simulator: SimulatorOptions,
    part: LayerOptions,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    check_least("--seed", run.seed, 0)
    check_least("--limit", memory.limit, 1)
    check_least("--jobs", part.jobs, 1)
    _check_layers(run, part)
    _check_waves(run, simulator, part)
    for what, folder in (("run folder", run.output), ("folder for waves", simulator.waves)):
        if folder is not None:
            check_folder(folder, what)
    with terminal.progress() as tell:
        tell("load", 0, 1)
        bundle = load_bundle(program, run.model)
        if run.check:
            bundle.need_model("--check")
        host = open_host(bundle)
    feeds = read_inputs(run.inputs or [], input_shapes(bundle, host), run.seed)
    waves = simulator.waves_of_whole_run
    rtl = RtlOptions(
        bench=bench_kind(simulator.bench).open(waves is not None),
        memory=memory.settings(run.seed + 1),
        limit=memory.limit,
        verilog=simulator.verilog,
        folder=waves,
    )
    if part.layers is not None:
        _run_layers(terminal, bundle, feeds, rtl, part.layers, part, as_json)
    else:
        _run_whole(terminal, bundle, feeds, rtl, host, run, simulator.waves, as_json)


def _check_layers(run: RunOptions, part: LayerOptions) -> None:
    """Refuse what contradicts running chosen layers alone."""
    if part.tile is not None and part.layers is None:
        raise UsageError("--tile needs --layers to say of which layers")
    if part.layers is not None and not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--layers runs in RTL only, not with --backend {run.backend}")
    if part.layers is not None and run.output is not None:
        raise UsageError("-o keeps whole runs: leave it or --layers out")


def _check_waves(run: RunOptions, simulator: SimulatorOptions, part: LayerOptions) -> None:
    """Refuse waves where none can be recorded."""
    if simulator.waves is not None and not run.kind.capabilities.waves:
        raise UsageError(f"--waves are of RTL only, not of --backend {run.backend}")
    if simulator.waves is not None and (part.layers is not None or bench_kind(simulator.bench).waves is None):
        raise UsageError("--waves needs a whole run on the fast or the detailed bench")


def _run_layers(
    terminal: Terminal,
    bundle: Bundle,
    feeds: Mapping[str, Array],
    rtl: RtlOptions,
    pattern: str,
    part: LayerOptions,
    as_json: bool,
) -> None:
    """Chosen layers alone, each block against the golden model; or one tile of them, instruction by instruction."""
    started = time.monotonic()
    folded = bundle.need_model("--layers")
    params = bundle.program.params
    inputs = all_inputs(folded, HostSide(folded), feeds, params.match)
    with terminal.progress() as tell:
        if part.tile is None:
            pieces = block_pieces(folded, params, inputs, pattern)
        else:
            pieces = tile_pieces(bundle.programs, folded, inputs, pattern, part.tile)
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        runs = run_pieces(pieces, lambda: open_rtl(shown), jobs=part.jobs, tell=tell)
    record = slices_record(bundle.program.name, params, runs, started)
    if as_json:
        terminal.json(record)
    else:
        table = new_table(
            "block" if part.tile is None else "tile", ">cycles", ">utilization", ">bytes compared", "result", ""
        )
        for row in record["slices"]:
            result = Text(row["first"], "red") if row["mismatches"] else Text("equal", "green")
            use, kept = f"{100 * row['mac_use']:.1f} %", "from the cache" if row["cached"] else ""
            table.add_row(row["name"], f"{row['cycles']:,}", use, f"{row['compared_bytes']:,}", result, kept)
        terminal.table(table)
    if record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _run_whole(
    terminal: Terminal,
    bundle: Bundle,
    feeds: Mapping[str, Array],
    rtl: RtlOptions,
    host: HostSide | None,
    run: RunOptions,
    waves: Path | None,
    as_json: bool,
) -> None:
    """The whole program; where the RTL leaves the golden model, its first instruction that went wrong."""
    with terminal.progress() as tell:
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        runner = open_backend(run.backend, bundle, shown, keep_tensors=run.check)
        watch = watcher(tell, run.kind.capabilities.progress_unit)
        done = execute(bundle, runner, feeds, host=host, check=run.check, progress=watch)
    divergence = None
    if done.golden_differs and run.kind.capabilities.write_log:
        terminal.say("results differ: looking for the first instruction that went wrong")
        divergence = locate(bundle, done, rtl, waves)
    _finish(terminal, bundle.program, done, run.output, divergence, as_json)
    if done.mismatches:
        _explain(terminal, bundle, done)
        raise typer.Exit(int(ExitCode.MISMATCH))


def watcher(tell: Tell, steps: str = "cycles") -> ProgressCallback:
    """Shows a run's progress: layers, and simulated cycles (or other `steps`) with their rate and the time left."""
    # Until the first report comes, Verilog may have to be generated and a simulator built.
    tell("prepare", 0, 1)

    def watch(progress: Progress) -> None:
        tell("prepare", 1, 1)
        tell("layers", progress.layers_done, progress.layers)
        tell(steps, progress.cycle, progress.cycle + round(progress.seconds_left * progress.sim_hz))

    return watch


def _finish(
    terminal: Terminal,
    program: Program,
    done: RunResult,
    output: Path | None,
    divergence: Divergence | None,
    as_json: bool,
) -> None:
    record = make_record(program, done) if output is None else save_run(output, program, done)
    if as_json:
        terminal.json({**record, "divergence": None if divergence is None else str(divergence)})
    else:
        if divergence is not None:
            terminal.say(str(divergence))
        show_record(terminal, record)
        if output is not None:
            terminal.say(f"outputs and record are in {output}; see them with: intloom report {output}")


def _explain(terminal: Terminal, bundle: Bundle, done: RunResult) -> None:
    """Only onnxruntime differs, and not for its float kernels alone: say all that is known about the model."""
    if not done.attribution or bundle.folded is None:
        return
    terminal.say(f"golden model and accelerator agree; {done.attribution}")
    for warning in bundle.folded.warnings:
        terminal.say(warning, label="warning", color="yellow")


def show_record(terminal: Terminal, record: Mapping[str, Any]) -> None:
    """Tells a person what a run gave."""
    if terminal.verbosity > 0 and record["cycles"]:
        table = new_table("layer", "kind", ">cycles", ">utilization", ">predicted")
        for layer in record["layers"]:
            use = f"{100 * layer['mac_use']:.1f} %" if layer["macs"] else ""
            table.add_row(layer["name"], layer["op"], f"{layer['cycles']:,}", use, f"{layer['predicted_cycles']:,}")
        terminal.err.print(table)
    if record["cycles"]:
        terminal.say(
            f"{record['cycles']:,} cycles, array utilization {100 * record['mac_use']:.1f} %, "
            f"{record['dram_bytes'] / 1e6:.2f} MB of memory traffic; simulated in {record['wall_s']:.1f} s "
            f"at {record['sim_hz'] / 1e3:,.0f} kHz (build {record['build_s']:.0f} s)"
        )
    else:
        terminal.say(f"{record['backend']}: {record['wall_s']:.2f} s")
    against = {c["against"]: 0 for c in record["checks"]}
    for check in record["checks"]:
        against[check["against"]] += check["bytes"] - check["attributed"]
        if check["mismatches"]:
            what = f"{check['tensor']} from {check['against']}"
            terminal.say(f"{what}: {check['mismatches']:,} bytes, {check['first']}", label="differs", color="red")
    if record["attributed"]:
        why = f"{record['attributed']:,} bytes differ: {record['attribution']}"
        terminal.say(why, label="attributed", color="yellow")
    if record["checks"] and not record["mismatches"]:
        equal = ", ".join(f"{n:,} bytes against {name}" for name, n in against.items())
        terminal.say(equal, label="equal", color="green")
