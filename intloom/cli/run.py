"""`intloom run`: run a program and compare its results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from intloom.arrays import Array
from intloom.cli.console import Tell, Terminal, new_table
from intloom.cli.options import AsJson, Dims, check_least, choice, grouped, parse_dims, terminal_of
from intloom.common.errors import ExitCode, UsageError
from intloom.compiler.program.program import Program
from intloom.files import check_folder
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.host import HostSide
from intloom.flow.inputs import read_inputs
from intloom.flow.record import make_record, save_run
from intloom.flow.regions import all_inputs
from intloom.flow.running import can_locate, execute, input_shapes, locate, open_backend, open_host
from intloom.flow.slicing import block_pieces, run_pieces, slices_record, tile_pieces
from intloom.sim.backend import BACKENDS, BackendKind, backend_kind, open_rtl
from intloom.sim.compare.divergence import Divergence
from intloom.sim.result import Progress, ProgressCallback, RunResult
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import BENCHES, RtlOptions, bench_kind

_HELP = """Run a program on the golden model, the instruction simulator or the RTL.

--check compares every layer byte for byte with the golden model, and with onnxruntime on a form of the model that it
computes in integers. The exit code is 0 if all bytes are equal, and 1 otherwise. It also prints how far the results are
from those of the unchanged file in onnxruntime. With --match-original, such a difference gives exit code 1 too.

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
    """Backend, inputs, checks and output folder of a run."""

    backend: Annotated[BackendName, typer.Option(help="Backend.")] = "rtl"
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[NAME=]FILE",
            help=".npy, .npz, PNG or JPEG. Default: seeded image. Repeatable.",
        ),
    ] = None
    check: Annotated[bool, typer.Option("--check", help="Compare with the golden model and onnxruntime.")] = False
    match_original: Annotated[
        bool, typer.Option("--match-original", help="With --check: a difference from the file itself is an error too.")
    ] = False
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUNDIR", help="Folder for outputs and record.")
    ] = None
    model: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="Model. Default: PROGRAM.loom.onnx.")] = None
    dim: Dims = None
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the input and of memory stalls.")] = 0

    @property
    def kind(self) -> BackendKind:
        """The selected backend."""
        return backend_kind(self.backend)


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """Behavior of the simulated memory, and the cycle limit."""

    latency: Annotated[int, typer.Option(metavar="CYCLES", help="RTL: memory read latency.")] = (
        MemorySettings.read_latency
    )
    bandwidth: Annotated[
        float, typer.Option(metavar="BEATS", help="RTL: beats per cycle, reads and writes together; 0 is unlimited.")
    ] = MemorySettings.bandwidth
    stalls: Annotated[int, typer.Option(metavar="N", help="RTL: probability of a bus stall, in 1/1000.")] = 0
    limit: Annotated[int | None, typer.Option(metavar="CYCLES", help="RTL: cycle limit; above it, an error.")] = None

    def settings(self, seed: int) -> MemorySettings:
        """Settings of the memory model."""
        return MemorySettings(
            read_latency=self.latency, bandwidth=self.bandwidth, stall_permille=self.stalls, seed=seed
        )


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """Simulator and Verilog source."""

    verilog: Annotated[Path | None, typer.Option(metavar="FILE", help="RTL: simulate this npu.v.")] = None
    bench: Annotated[
        BenchName,
        typer.Option(help="RTL: detailed checks every bus cycle; icarus uses Icarus Verilog."),
    ] = "fast"
    waves: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="RTL: waves around the first wrong write; with --bench detailed, of all.",
        ),
    ] = None

    @property
    def waves_of_whole_run(self) -> Path | None:
        """The folder for waves, if the bench records those of the whole run."""
        return self.waves if bench_kind(self.bench).waves == "whole run" else None


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Selection of layers that run separately."""

    layers: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="RTL: run only layers such as model.4.*, each block separately."),
    ] = None
    tile: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --layers: run tile N of each, instruction by instruction."),
    ] = None
    jobs: Annotated[int, typer.Option(metavar="N", help="With --layers: parallel simulations.")] = 1


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
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
    _check_memory(run, memory)
    _check_layers(run, part)
    _check_waves(run, simulator, part)
    if run.match_original and not run.check:
        raise UsageError("--match-original needs --check; add it")
    for what, folder in (("run folder", run.output), ("folder for waves", simulator.waves)):
        if folder is not None:
            check_folder(folder, what)
    with terminal.progress() as tell:
        tell("load", 0, 1)
        bundle = load_bundle(program, run.model, parse_dims(run.dim))
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


def _check_memory(run: RunOptions, memory: MemoryOptions) -> None:
    """Reject options of the simulated memory for a backend that has none."""
    given = [f"--{f.name}" for f in fields(memory) if getattr(memory, f.name) != f.default]
    if given and not run.kind.capabilities.memory_timing:
        raise UsageError(f"{given[0]} needs simulated memory, not --backend {run.backend}; use --backend rtl")


def _check_layers(run: RunOptions, part: LayerOptions) -> None:
    """Reject options that contradict a run of selected layers."""
    if part.tile is not None and part.layers is None:
        raise UsageError("--tile needs --layers; give the layers whose tile runs")
    if part.layers is not None and not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--layers runs in RTL only, not with --backend {run.backend}; use --backend rtl")
    if part.layers is not None and run.output is not None:
        raise UsageError("-o and --layers exclude each other, because -o stores whole runs; remove one of them")


def _check_waves(run: RunOptions, simulator: SimulatorOptions, part: LayerOptions) -> None:
    """Reject --waves for runs that cannot record waves."""
    if simulator.waves is not None and not run.kind.capabilities.waves:
        raise UsageError(f"--waves needs the RTL, not --backend {run.backend}; use --backend rtl")
    if simulator.waves is not None and (part.layers is not None or bench_kind(simulator.bench).waves is None):
        raise UsageError("--waves needs a whole run on the fast or detailed bench; remove --layers or change --bench")


def _run_layers(
    terminal: Terminal,
    bundle: Bundle,
    feeds: Mapping[str, Array],
    rtl: RtlOptions,
    pattern: str,
    part: LayerOptions,
    as_json: bool,
) -> None:
    """Run selected layers, each block separately, or one tile of them, and compare with the golden model."""
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
    """Run the whole program; if the RTL differs from the golden model, find the first wrong instruction."""
    with terminal.progress() as tell:
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        runner = open_backend(run.backend, bundle, shown, keep_tensors=run.check)
        watch = watcher(tell, run.kind.capabilities.progress_unit)
        done = execute(bundle, runner, feeds, host=host, check=run.check, progress=watch)
    divergence = None
    if can_locate(done):
        terminal.say("results differ: searching for the first instruction with a wrong write")
        done, divergence = locate(bundle, done, rtl, waves)
    _finish(terminal, bundle.program, done, run.output, divergence, as_json)
    if done.mismatches or (run.match_original and done.original is not None and not done.original.matches):
        raise typer.Exit(int(ExitCode.MISMATCH))


def watcher(tell: Tell, steps: str = "cycles") -> ProgressCallback:
    """Progress callback that shows layers, and cycles or other `steps` with rate and remaining time."""
    # The first report comes after Verilog generation and the build of the simulator.
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
            terminal.say(f"outputs and record are in {output}; intloom report {output} makes a page of them")


def show_record(terminal: Terminal, record: Mapping[str, Any]) -> None:
    """Print a summary of a run."""
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
        against[check["against"]] += check["bytes"]
        if check["mismatches"]:
            what = f"{check['tensor']} against {check['against']}"
            terminal.say(f"{what}: {check['mismatches']:,} bytes, {check['first']}", label="differs", color="red")
    if record["checks"] and not record["mismatches"]:
        equal = ", ".join(f"{n:,} bytes against {name}" for name, n in against.items())
        terminal.say(equal, label="equal", color="green")
    if record["original"] is not None:
        _show_original(terminal, record["original"])


def _show_original(terminal: Terminal, original: Mapping[str, Any]) -> None:
    """Print the distance from the user's file in plain onnxruntime."""
    if original["error"]:
        terminal.say(original["error"], label="original file", color="yellow")
    if floats := original["float_layers"]:
        terminal.say(f"onnxruntime computes {len(floats)} layers of it in float", label="original file")
    for output in original["outputs"]:
        share = 100 * output["differing"] / max(1, output["values"])
        steps = "" if output["largest_steps"] is None else f"{output['largest_steps']} steps, "
        text = f"{output['output']}: {share:.3g} % of {output['values']:,} values differ"
        largest = f", by at most {steps}{output['largest']:.3g} in real units" if output["differing"] else ""
        terminal.say(f"{text}{largest}", label="original file")
