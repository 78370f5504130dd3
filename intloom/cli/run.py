"""`intloom run`: run a program and prove its results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from intloom.arrays import Array
from intloom.cli.console import Tell, Terminal, new_table
from intloom.cli.options import AsJson, check_least, terminal_of
from intloom.common.errors import ExitCode, UsageError
from intloom.files import check_folder
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.host import HostSide
from intloom.flow.inputs import read_inputs
from intloom.flow.regions import all_inputs
from intloom.flow.running import (
    USUAL_MEMORY,
    BackendName,
    BenchName,
    Execution,
    RtlOptions,
    execute,
    input_shapes,
    locate,
    open_backend,
    open_bench,
    open_host,
    open_rtl,
)
from intloom.flow.slicing import block_pieces, run_pieces, slices_record, tile_pieces
from intloom.sim.compare.divergence import Divergence
from intloom.sim.result import Progress, ProgressCallback
from intloom.sim.rtl.job import MemorySettings

_HELP = """Run a program on the golden model, the instruction simulator or the RTL.

With --check the results are compared byte for byte with the golden model and with onnxruntime; exit code 0 only when
everything compared was equal, 1 otherwise.

Examples:

[bold]intloom run yolov8n.loom --backend rtl --check -o out/run[/bold]

[bold]intloom run yolov8n.loom --backend isa --input bus.jpg --json[/bold]

[bold]intloom run yolov8n.loom --layers "model.4.*" --jobs 2[/bold]
"""


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command("run", help=_HELP)(_run)


def _run(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    backend: Annotated[BackendName, typer.Option(help="What runs it.")] = BackendName.RTL,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="[NAME=]FILE", help=".npy, .npz, PNG or JPEG; else a seeded image. Repeat."
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with golden model and onnxruntime.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUNDIR", help="Keep outputs and record.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL.onnx", help="The model, if not beside the program.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="For the input and for memory stalls.")] = 0,
    latency: Annotated[int, typer.Option(metavar="CYCLES", help="RTL: read latency of the memory.")] = (
        USUAL_MEMORY.read_latency
    ),
    bandwidth: Annotated[
        float, typer.Option(metavar="BEATS", help="RTL: beats a cycle, reads and writes together; 0 is all.")
    ] = USUAL_MEMORY.bandwidth,
    stalls: Annotated[int, typer.Option(metavar="N", help="RTL: chance of a bus pause, in thousandths.")] = 0,
    limit: Annotated[int | None, typer.Option(metavar="CYCLES", help="RTL: give up after this many.")] = None,
    verilog: Annotated[Path | None, typer.Option(metavar="FILE", help="RTL: simulate this npu.v instead.")] = None,
    bench: Annotated[
        BenchName, typer.Option(help="RTL: fast; detailed checks every bus cycle; icarus is a second simulator.")
    ] = BenchName.FAST,
    waves: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="RTL: waves around the first wrong write; on the detailed bench, of all."),
    ] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="RTL: only layers such as model.4.*, each block alone.")
    ] = None,
    tile: Annotated[
        int | None, typer.Option(metavar="N", help="With --layers: only tile N of each, instruction by instruction.")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="With --layers: blocks at once.")] = 1,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    check_least("--seed", seed, 0)
    check_least("--limit", limit, 1)
    check_least("--jobs", jobs, 1)
    _check_slicing(backend, layers, tile, output)
    _check_waves(backend, bench, layers, waves)
    for what, folder in (("run folder", output), ("folder for waves", waves)):
        if folder is not None:
            check_folder(folder, what)
    with terminal.progress() as tell:
        tell("load", 0, 1)
        bundle = load_bundle(program, model)
        if check:
            bundle.need_model("--check")
        host = open_host(bundle)
    feeds = read_inputs(inputs or [], input_shapes(bundle, host), seed)
    memory = MemorySettings(read_latency=latency, bandwidth=bandwidth, stall_permille=stalls, seed=seed + 1)
    detailed_waves = waves if bench is BenchName.DETAILED else None
    rtl = RtlOptions(
        bench=open_bench(bench, waves=detailed_waves is not None),
        memory=memory,
        limit=limit,
        verilog=verilog,
        folder=detailed_waves,
    )
    if layers is not None:
        _run_layers(terminal, bundle, feeds, rtl, layers, tile, jobs, as_json)
    else:
        _run_whole(terminal, bundle, feeds, rtl, host, backend, check, waves, output, as_json)


def _check_slicing(backend: BackendName, layers: str | None, tile: int | None, output: Path | None) -> None:
    """Refuse what contradicts running chosen layers alone."""
    if tile is not None and layers is None:
        raise UsageError("--tile needs --layers to say of which layers")
    if layers is not None and backend is not BackendName.RTL:
        raise UsageError(f"--layers runs in RTL only, not with --backend {backend}")
    if layers is not None and output is not None:
        raise UsageError("-o keeps whole runs: leave it or --layers out")


def _check_waves(backend: BackendName, bench: BenchName, layers: str | None, waves: Path | None) -> None:
    """Refuse waves of what has none."""
    if waves is not None and backend is not BackendName.RTL:
        raise UsageError(f"--waves are of RTL only, not of --backend {backend}")
    if waves is not None and (layers is not None or bench is BenchName.ICARUS):
        raise UsageError("--waves needs a whole run on the fast or the detailed bench")


def _run_layers(
    terminal: Terminal,
    bundle: Bundle,
    feeds: Mapping[str, Array],
    rtl: RtlOptions,
    pattern: str,
    tile: int | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Chosen layers alone, each block against the golden model; or one tile of them, instruction by instruction."""
    started = time.monotonic()
    folded = bundle.need_model("--layers")
    params = bundle.program.params
    inputs = all_inputs(folded, HostSide(folded), feeds, params.match)
    with terminal.progress() as tell:
        if tile is None:
            pieces = block_pieces(folded, params, inputs, pattern)
        else:
            pieces = tile_pieces(bundle.programs, folded, inputs, pattern, tile)
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        runs = run_pieces(pieces, lambda: open_rtl(shown), jobs=jobs, tell=tell)
    record = slices_record(bundle.program.name, params, runs, started)
    if as_json:
        terminal.json(record)
    else:
        table = new_table("block" if tile is None else "tile", ">cycles", ">array use", ">bytes compared", "result", "")
        for part in record["slices"]:
            result = Text(part["first"], "red") if part["mismatches"] else Text("equal", "green")
            use, kept = f"{100 * part['mac_use']:.1f} %", "from the cache" if part["cached"] else ""
            table.add_row(part["name"], f"{part['cycles']:,}", use, f"{part['compared_bytes']:,}", result, kept)
        terminal.table(table)
    if record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _run_whole(
    terminal: Terminal,
    bundle: Bundle,
    feeds: Mapping[str, Array],
    rtl: RtlOptions,
    host: HostSide | None,
    backend: BackendName,
    check: bool,
    waves: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """The whole program; where the RTL leaves the golden model, its first instruction that went wrong."""
    with terminal.progress() as tell:
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        steps = "cycles" if backend is BackendName.RTL else "instructions"
        runner = open_backend(backend, bundle, shown, keep_tensors=check)
        done = execute(bundle, runner, feeds, host=host, check=check, progress=watcher(tell, steps))
    divergence = None
    if done.golden_differs and backend is BackendName.RTL:
        terminal.say("results differ: looking for the first instruction that went wrong")
        divergence = locate(done, rtl, waves)
    _finish(terminal, done, output, divergence, as_json)
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
    terminal: Terminal, done: Execution, output: Path | None, divergence: Divergence | None, as_json: bool
) -> None:
    record = done.record()
    if output is not None:
        done.save(output)
    if as_json:
        terminal.json({**record, "divergence": None if divergence is None else str(divergence)})
    else:
        if divergence is not None:
            terminal.say(str(divergence))
        show_record(terminal, record)
        if output is not None:
            terminal.say(f"outputs and record are in {output}; see them with: intloom report {output}")


def _explain(terminal: Terminal, bundle: Bundle, done: Execution) -> None:
    """Only onnxruntime differs, and not for its float kernels alone: say all that is known about the model."""
    if done.attribution is None or bundle.folded is None:
        return
    terminal.say(f"golden model and accelerator agree; {done.attribution.text}")
    for warning in bundle.folded.warnings:
        terminal.say(warning, label="warning", color="yellow")


def show_record(terminal: Terminal, record: Mapping[str, Any]) -> None:
    """Tells a person what a run gave."""
    if terminal.verbosity > 0 and record["cycles"]:
        table = new_table("layer", "kind", ">cycles", ">array use", ">predicted")
        for layer in record["layers"]:
            use = f"{100 * layer['mac_use']:.1f} %" if layer["macs"] else ""
            table.add_row(layer["name"], layer["op"], f"{layer['cycles']:,}", use, f"{layer['predicted_cycles']:,}")
        terminal.err.print(table)
    if record["cycles"]:
        terminal.say(
            f"{record['cycles']:,} cycles, array use {100 * record['mac_use']:.1f} %, "
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
