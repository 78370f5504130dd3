"""`intloom run`: run a program and compare its results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from intloom.arrays import Array
from intloom.cli.console import Terminal, new_table
from intloom.cli.options import AsJson, check_least, grouped, parse_dims, terminal_of
from intloom.cli.run_options import (
    Kernels,
    LayerOptions,
    MemoryOptions,
    RunOptions,
    SimulatorOptions,
    check_jobs,
    check_layers,
    check_memory,
    check_waves,
)
from intloom.cli.run_output import show_record, watcher
from intloom.common.errors import ExitCode, UsageError
from intloom.common.temporary_files import check_temporary_space
from intloom.compiler.program.program import Program
from intloom.files import check_folder
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.host import HostParts
from intloom.flow.inputs import read_inputs
from intloom.flow.record import make_record, save_run
from intloom.flow.reference import host_of
from intloom.flow.regions import all_inputs
from intloom.flow.running import can_locate, execute, locate, open_backend, open_host
from intloom.flow.slicing import block_pieces, run_pieces, slices_record, tile_pieces
from intloom.sim.backend import open_rtl
from intloom.sim.compare.divergence import Divergence
from intloom.sim.result import RunResult
from intloom.sim.rtl.options import RtlOptions, bench_kind

_HELP = """Run a program on the golden model, the instruction simulator or the RTL.

--check compares every layer byte for byte with the golden model, and with onnxruntime on a form of the model that it
computes in integers, or with LiteRT for a TFLite file. The exit code is 0 if all bytes are equal, and 1 otherwise. It
also prints how far the results are from those of the unchanged file in that runtime. With --match-original, such a
difference gives exit code 1 too.

Examples:

[bold]intloom run yolov8n.loom --backend rtl --check -o out/run[/bold]

[bold]intloom run yolov8n.loom --backend isa --input bus.jpg --json[/bold]

[bold]intloom run yolov8n.loom --check --jobs 2[/bold]

[bold]intloom run yolov8n.loom --layers "model.4.*" --jobs 2[/bold]
"""


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
    check_least("--jobs", simulator.jobs, 1)
    check_memory(run, memory)
    check_layers(run, part)
    check_jobs(run, memory, simulator, part)
    check_waves(run, simulator, part)
    if run.match_original and not run.check:
        raise UsageError("--match-original needs --check; add it")
    if run.reference is not Kernels.LITERT and not run.check:
        raise UsageError(f"--reference {run.reference} needs --check; add it")
    for what, folder in (("run folder", run.output), ("folder for waves", simulator.waves)):
        if folder is not None:
            check_folder(folder, what)
    with terminal.progress() as tell:
        tell("load", 0, 1)
        micro = run.reference is Kernels.TFLITE_MICRO
        bundle = replace(load_bundle(program, run.model, parse_dims(run.dim)), micro=micro)
        if run.check:
            bundle.need_model("--check")
        host = open_host(bundle)
    if run.kind.capabilities.cycle_accurate:
        check_temporary_space(_simulator_bytes(bundle))
    feeds = read_inputs(run.inputs or [], bundle.inputs, run.seed)
    waves = simulator.waves_of_whole_run
    rtl = RtlOptions(
        bench=bench_kind(simulator.bench).open(waves is not None),
        memory=memory.settings(run.seed + 1),
        limit=memory.limit,
        verilog=simulator.verilog,
        folder=waves,
        # With --layers, blocks run in parallel instead.
        jobs=simulator.jobs if part.layers is None else 1,
        dask=simulator.dask,
    )
    if part.layers is not None:
        _run_layers(terminal, bundle, feeds, rtl, part.layers, part.tile, simulator.jobs, as_json)
    else:
        _run_whole(terminal, bundle, feeds, rtl, host, run, simulator.waves, as_json)


def _simulator_bytes(bundle: Bundle) -> int:
    """Size of the files of an RTL run: the memory before it, and the result of about the same size."""
    return 2 * max(p.memory_words * p.params.word_bytes for p in bundle.programs)


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
    """Run selected layers, each block separately, or one tile of them, and compare with the golden model."""
    started = time.monotonic()
    folded = bundle.need_model("--layers")
    params = bundle.program.params
    inputs = all_inputs(folded, host_of(folded), feeds, params.match)
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
        table = new_table(
            "block" if tile is None else "tile", ">cycles", ">utilization", ">bytes compared", "result", ""
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
    host: HostParts | None,
    run: RunOptions,
    waves: Path | None,
    as_json: bool,
) -> None:
    """Run the whole program; if the RTL differs from the golden model, find the first wrong instruction."""
    with terminal.progress() as tell:
        shown = replace(rtl, on_build=lambda built, steps: tell("build", built, steps))
        runner = open_backend(run.backend_name, bundle, shown, keep_tensors=run.check)
        watch = watcher(tell, run.kind.capabilities.progress_unit)
        done = execute(bundle, runner, feeds, host=host, check=run.check, progress=watch)
    divergence = None
    if can_locate(done):
        terminal.say("results differ: searching for the first instruction with a wrong write")
        done, divergence = locate(bundle, done, rtl, waves)
    _finish(terminal, bundle.program, done, run.output, divergence, as_json)
    if done.mismatches or (run.match_original and done.original is not None and not done.original.matches):
        raise typer.Exit(int(ExitCode.MISMATCH))


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
