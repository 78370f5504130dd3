"""`intloom run --frames`: every frame of a folder or file, and the frame rate."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from intloom.arrays import Array
from intloom.cli.console import Terminal, new_table
from intloom.cli.run_options import RunOptions
from intloom.common.errors import ExitCode
from intloom.exploration.device import clock_of
from intloom.flow.bundle import Bundle
from intloom.flow.frames import FrameRate, frame_files, in_turn
from intloom.flow.inputs import read_batch, read_inputs
from intloom.flow.record import make_record, save_run
from intloom.flow.running import execute, open_backend
from intloom.sim.result import RunResult


def run_frames(terminal: Terminal, bundle: Bundle, given: RunOptions, path: Path) -> None:
    """Run all frames of a folder or file; the next is read, and the last result written, while the accelerator runs."""
    frames: dict[str, Callable[[], dict[str, Array]]]
    if path.is_file():
        images = enumerate(read_batch(path, bundle.inputs))
        frames = {f"{path.stem}-{n}": partial(dict, image) for n, image in images}
    else:
        frames = {f.name: partial(read_inputs, [str(f)], bundle.inputs, given.seed) for f in frame_files(path)}
    backend = open_backend(given.backend_name, bundle, given.rtl_options(), keep_tensors=given.check)
    host_s = 0.0

    def run(feeds: dict[str, Array]) -> RunResult:
        return execute(bundle, backend, feeds, check=given.check)

    def read(frame: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        nonlocal host_s
        started = time.perf_counter()
        feeds = frame()
        host_s += time.perf_counter() - started
        return feeds

    rows: list[dict[str, Any]] = []
    with terminal.progress() as tell:
        tell("frames", 0, len(frames))
        for name, done in zip(frames, in_turn(map(read, frames.values()), run), strict=True):
            host_s += done.host_s
            if given.output is None:
                record = make_record(bundle.program, done)
            else:
                record = save_run(given.output / name, bundle.program, done)
            rows.append({"frame": name, **{n: record[n] for n in ("cycles", "compared_bytes", "mismatches")}})
            tell("frames", len(rows), len(frames))
    rate = _rate(bundle, rows, host_s)
    result = {"frames": rows, "frames_per_second": None if rate is None else rate.as_dict()}
    terminal.give(result, lambda: _show(terminal, rows, rate))
    if any(row["mismatches"] for row in rows):
        raise typer.Exit(int(ExitCode.MISMATCH))


def _rate(bundle: Bundle, rows: list[dict[str, Any]], host_s: float) -> FrameRate | None:
    """The frame rate; None where the backend counts no cycles."""
    if not all(row["cycles"] for row in rows):
        return None
    hertz = 1e6 * clock_of(bundle.program.params.macs).mhz
    cycles = sum(row["cycles"] for row in rows)
    return FrameRate(cycles / len(rows) / hertz, host_s / len(rows))


def _show(terminal: Terminal, rows: list[dict[str, Any]], rate: FrameRate | None) -> None:
    table = new_table("frame", ">cycles", ">bytes compared", ">bytes that differ")
    for row in rows:
        table.add_row(row["frame"], *("" if row[n] is None else f"{row[n]:,}" for n in list(row)[1:]))
    terminal.table(table)
    if rate is not None:
        terminal.say(
            f"{rate.alone:.1f} frames/s by the accelerator alone; with the host of this computer "
            f"({1000 * rate.host_s:.1f} ms a frame) {rate.overlapped:.1f} frames/s if it works on the next frame "
            f"meanwhile, {rate.one_by_one:.1f} frames/s if not"
        )
