"""`intloom run`: run a program and compare its results."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.arrays import Array
from intloom.cli.console import Terminal
from intloom.cli.options import parse_dims, subcommand
from intloom.cli.run_frames import run_frames
from intloom.cli.run_options import Kernels, RunOptions, check_options
from intloom.cli.run_output import show_record, show_slices, watcher
from intloom.common.errors import ExitCode, IntloomError
from intloom.common.temporary_files import check_temporary_space
from intloom.exploration.advice import advise
from intloom.exploration.energy import Technology, choose_technology, energy
from intloom.exploration.work import work_of
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.inputs import read_inputs
from intloom.flow.record import Notes, forget_run, make_record, save_run
from intloom.flow.reference import host_of
from intloom.flow.regions import all_inputs
from intloom.flow.running import can_locate, execute, locate, open_backend
from intloom.flow.slicing import PieceFiles, block_pieces, run_pieces, slices_record, tile_pieces
from intloom.flow.waves import check_layer, choose_window, record_waves
from intloom.sim.backend import open_rtl
from intloom.sim.result import RunResult
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.trace.gtkwave import SAVE_FILE

_HELP = """Run a program on the golden model, the instruction simulator or the RTL.

--check compares every layer byte for byte with the golden model, and with onnxruntime on a form of the model that it
computes in integers, or with LiteRT for a TFLite file. The exit code is 0 if all bytes are equal, and 1 otherwise. It
also prints how far the results are from those of the unchanged file in that runtime. With --match-original, such a
difference gives exit code 1 too.

Examples:

[bold]intloom run yolov8n.loom --backend rtl --check -o out/run[/bold]

[bold]intloom run yolov8n.loom --backend isa --input bus.jpg --json[/bold]

[bold]intloom run yolov8n.loom --check --jobs 2[/bold]

[bold]intloom run yolov8n.loom --frames photos[/bold]

[bold]intloom run yolov8n.loom --layers "model.4.*" --jobs 2 -o out/blocks[/bold]

[bold]intloom run yolov8n.loom --waves waves --cycles 10000:12000[/bold]
"""


@dataclass(frozen=True, eq=False)
class _Workload:
    """A program with its inputs, and how it runs."""

    bundle: Bundle
    feeds: Mapping[str, Array]
    given: RunOptions
    rtl: RtlOptions
    technology: Technology | None
    """Figures of the energy that is estimated."""


@subcommand("run", _HELP)
def _run(
    terminal: Terminal,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.loom", help="A program.")],
    given: RunOptions,
) -> None:
    check_options(given)
    technology = None if given.technology is None else choose_technology(given.technology)
    with terminal.progress() as tell:
        tell("load", 0, 1)
        micro = given.reference is Kernels.TFLITE_MICRO
        bundle = replace(load_bundle(program, given.model, parse_dims(given.dim)), micro=micro)
        if given.check:
            bundle.need_model("--check")
        if given.waves.from_layer is not None:
            check_layer(bundle.programs, given.waves.from_layer)
        _ = bundle.host  # loads them
    if given.kind.capabilities.cycle_accurate:
        check_temporary_space(_simulator_bytes(bundle))
    if given.frames is not None:
        run_frames(terminal, bundle, given, given.frames)
        return
    feeds = read_inputs(given.inputs or [], bundle.inputs, given.seed)
    work = _Workload(bundle, feeds, given, given.rtl_options(), technology)
    if given.part.layers is not None:
        _run_layers(terminal, work, given.part.layers)
    else:
        _run_whole(terminal, work)


def _simulator_bytes(bundle: Bundle) -> int:
    """Size of the files of an RTL run: the memory before it, and the result of about the same size."""
    return 2 * max(p.memory_words * p.params.word_bytes for p in bundle.programs)


def _run_layers(terminal: Terminal, work: _Workload, pattern: str) -> None:
    """Run selected layers, each block separately, or one tile of them, and compare with the golden model."""
    started, given, bundle = time.monotonic(), work.given, work.bundle
    folded, params, tile = bundle.need_model("--layers"), bundle.program.params, given.part.tile
    inputs = all_inputs(folded, host_of(folded), work.feeds, params.match)
    files = None
    if given.output is not None or given.waves.folder is not None:
        files = PieceFiles(given.output, given.waves.folder, given.waves.window)
    with terminal.progress() as tell:
        if tile is None:
            pieces = block_pieces(folded, params, inputs, pattern)
        else:
            pieces = tile_pieces(bundle.programs, folded, inputs, pattern, tile)
        if files is not None:
            files.clear(pieces)
        shown = replace(work.rtl, on_build=lambda built, steps: tell("build", built, steps))
        runs = run_pieces(pieces, lambda: open_rtl(shown), jobs=given.rtl.jobs, tell=tell, files=files)
    record = slices_record(bundle.program.name, params, runs, started)
    if terminal.as_json:
        terminal.json(record)
    else:
        show_slices(terminal, record, "block" if tile is None else "tile")
        for kind, folder in (("records", given.output), ("waves", given.waves.folder)):
            if folder is not None:
                terminal.say(f"{kind} of each are in {folder}, in a folder with its name")
    if record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _run_whole(terminal: Terminal, work: _Workload) -> None:
    """Run the whole program; if the RTL differs from the golden model, find the first wrong instruction."""
    given, bundle = work.given, work.bundle
    if given.output is not None:
        forget_run(given.output)
    with terminal.progress() as tell:
        shown = replace(work.rtl, on_build=lambda built, steps: tell("build", built, steps))
        runner = open_backend(given.backend_name, bundle, shown, keep_tensors=given.check)
        watch = watcher(tell, given.kind.capabilities.progress_unit)
        done = execute(bundle, runner, work.feeds, check=given.check, progress=watch)
    if can_locate(done):
        terminal.say("results differ: searching for the first instruction with a wrong write")
        done = locate(bundle, done, work.rtl)
    located = done.first_divergence.description if done.first_divergence is not None else ""
    record = _keep(terminal, work, done)
    if not terminal.as_json:
        if located:
            terminal.say(located)
        show_record(terminal, record)
    # After the record, so that nothing of the result is lost if the simulator for waves cannot be built.
    if given.waves.folder is not None:
        record = _record_waves(terminal, work, done) or record
    if terminal.as_json:
        terminal.json({**record, "divergence": located or None})
    elif given.output is not None:
        terminal.say(f"outputs and record are in {given.output}; intloom report {given.output} makes a page of them")
    if done.mismatches or (given.match_original and done.original is not None and not done.original.matches):
        raise typer.Exit(int(ExitCode.MISMATCH))


def _keep(terminal: Terminal, work: _Workload, done: RunResult) -> dict[str, Any]:
    """The record, written to the output folder if there is one."""
    program, folder = work.bundle.program, work.given.output
    spent = _energy(work, done)
    if folder is None:
        return make_record(program, done, Notes(energy=spent))
    why = advise(work.bundle, work.rtl.memory.timing) if done.cycles else ""
    return save_run(folder, program, done, Notes(command=terminal.command, why=why, energy=spent))


def _energy(work: _Workload, done: RunResult) -> dict[str, Any]:
    """The estimated energy: counts of the program's instructions, and words of DRAM as the hardware counted them."""
    table, params = work.technology, work.bundle.program.params
    if table is None:
        return {}
    counts = work_of(work.bundle.programs)
    counts = replace(counts, dram=done.dram_bytes // params.word_bytes or counts.dram)
    return {"technology": table.name, "source": table.source, "microjoules": energy(counts, params, table)}


def _record_waves(terminal: Terminal, work: _Workload, done: RunResult) -> dict[str, Any] | None:
    """Record waves and print their file; the record with it if it is that of a wrong write."""
    waves, folder = work.given.waves, work.given.waves.folder
    assert folder is not None
    window = choose_window(work.bundle.programs, done, waves.window, waves.from_layer)
    region = done.regions[window.region]
    try:
        file = record_waves(work.bundle.programs[window.region], region, window, work.rtl, folder)
    except IntloomError as error:
        if not done.mismatches:
            raise
        # The difference is the result of this run, and its exit code.
        terminal.say(f"no waves were recorded: {error}", label="warning", color="yellow")
        return None
    terminal.say(f"waves of cycles {window.first:,} to {window.last:,}: {file}")
    terminal.say(f"with instructions and layers: gtkwave {file.with_name(SAVE_FILE)}")
    first = done.first_divergence
    if first is None:
        return None
    return _keep(terminal, work, replace(done, first_divergence=replace(first, waves=str(file))))
