"""RTL runs of selected layers or tiles with golden inputs; results are cached by program, inputs and RTL."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from intloom.compiler.frontend import FoldedModel
from intloom.compiler.program.program import Program, Role, array_use
from intloom.compiler.schedule import compile_graph
from intloom.flow.host import Int8
from intloom.flow.record import forget_run, safe_name, save_run
from intloom.flow.waves import choose_window, record_waves
from intloom.hw.spec.params import HardwareParams
from intloom.sim.compare import compare
from intloom.sim.result import Arrays, RunResult
from intloom.sim.result_cache import CachedRun, run_cached
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.slices import blocks, extract, golden_tensors, is_trivial, make_slice, select
from intloom.sim.tiles import tile_slices


@dataclass(frozen=True)
class SliceRun:
    """Result of one piece."""

    name: str
    figures: Mapping[str, Any]
    compared_bytes: int
    mismatches: int
    first: str
    cached: bool


Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Piece:
    """A program with its inputs and expected outputs."""

    name: str
    program: Callable[[], Program]
    inputs: Arrays
    expected: Arrays


def block_pieces(folded: FoldedModel, params: HardwareParams, inputs: Mapping[str, Int8], pattern: str) -> list[Piece]:
    """Every block that has layers matching `pattern`, such as `model.4.*`, with golden inputs, in the network's order.

    Raises
    ------
    UsageError
        The pattern matches nothing.
    """
    chosen = set(select(folded.graph, pattern))
    tensors = golden_tensors(folded.graph, inputs, params.match)
    pieces = []
    for name, nodes in blocks(folded.graph).items():
        kept = [n for n in nodes if n in chosen]
        if kept and not is_trivial(extract(folded.graph, kept, name)):
            part = make_slice(folded.graph, kept, name, tensors)
            pieces.append(Piece(name, partial(compile_graph, part.graph, params), part.inputs, part.expected))
    return pieces


def tile_pieces(
    programs: Sequence[Program], folded: FoldedModel, inputs: Arrays, pattern: str, tile: int
) -> list[Piece]:
    """Every computing instruction of one tile of the layers matching `pattern`, on the memory contents at its start.

    Raises
    ------
    UsageError
        The pattern matches nothing, or no layer has such a tile.
    """
    layers = {node.name for node in select(folded.graph, pattern)}
    pieces = []
    for program in programs:
        own = layers & {layer.name for layer in program.layers}
        given = {p.name: inputs[p.name] for p in program.tensors if p.role is Role.INPUT}
        slices = tile_slices(program, given, own, tile) if own else ()
        pieces += [Piece(part.name, partial(_same, part.program), {}, part.expected) for part in slices]
    return pieces


def _same(program: Program) -> Program:
    return program


@dataclass(frozen=True)
class PieceFiles:
    """What is kept of each piece, in a folder with its name."""

    records: Path | None = None
    """For the records, of which `intloom report` makes pages."""
    waves: Path | None = None
    cycles: tuple[int, int] | None = None
    """The window of the waves."""

    def clear(self, pieces: Sequence[Piece]) -> None:
        """Remove the records of earlier runs."""
        if self.records is not None:
            for piece in pieces:
                forget_run(self.records / safe_name(piece.name))

    def save(self, piece: Piece, program: Program, backend: RtlBackend) -> RunResult:
        """Run a piece and keep its files."""
        result = backend.run(program, piece.inputs)
        checks = compare(piece.expected, result.outputs).checks
        result = replace(result, inputs=piece.inputs, checks=checks, model_outputs=result.outputs, regions=(result,))
        if self.records is not None:
            save_run(self.records / safe_name(piece.name), program, result)
        if self.waves is not None:
            window = choose_window((program,), result, self.cycles)
            record_waves(program, result, window, backend.options, self.waves / safe_name(piece.name))
        return result


def run_pieces(
    pieces: Sequence[Piece],
    open_backend: Callable[[], RtlBackend],
    *,
    jobs: int = 1,
    tell: Tell | None = None,
    files: PieceFiles | None = None,
) -> list[SliceRun]:
    """Run all pieces, `jobs` at a time; return the results in the order of the pieces. With `files` none is cached."""
    report = tell or (lambda _stage, _done, _all: None)
    # Threads are sufficient, because simulators are separate processes.
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_run, piece, open_backend(), files) for piece in pieces]
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                future.result()
                report("slices", count, len(futures))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _run(piece: Piece, backend: RtlBackend, files: PieceFiles | None) -> SliceRun:
    program = piece.program()
    if files is None:
        result = run_cached(program, piece.inputs, backend)
    else:
        saved = files.save(piece, program, backend)
        result = CachedRun(saved.outputs, saved.to_dict(), False)
    comparison = compare(piece.expected, result.outputs)
    first = next(iter(comparison.differences), "")
    return SliceRun(
        piece.name, result.figures, comparison.compared_bytes, comparison.differing_bytes, first, result.cached
    )


def _stalls(figures: Mapping[str, Any]) -> dict[str, int]:
    """Stalled cycles of all layers, by unit and cause, the largest first."""
    total: Counter[str] = Counter()
    for layer in figures["layers"]:
        total.update(layer["stalls"])
    return dict(total.most_common())


def slices_record(name: str, params: HardwareParams, runs: list[SliceRun], started: float) -> dict[str, Any]:
    """Totals of all pieces, with the keys of the record of a whole run."""
    cycles = sum(int(r.figures["cycles"]) for r in runs)
    macs = sum(int(r.figures["macs"]) for r in runs)
    return {
        "name": name,
        "backend": "rtl",
        "cycles": cycles,
        "macs": macs,
        "vector_macs": sum(int(r.figures["vector_macs"]) for r in runs),
        "mac_use": array_use(macs, cycles, params),
        "mismatches": sum(r.mismatches for r in runs),
        "compared_bytes": sum(r.compared_bytes for r in runs),
        "sim_hz": max((float(r.figures["sim_hz"]) for r in runs), default=0.0),
        "wall_s": time.monotonic() - started,
        "build_s": max((float(r.figures["build_s"]) for r in runs if not r.cached), default=0.0),
        "dram_bytes": sum(int(r.figures["dram_bytes"]) for r in runs),
        "layers": [layer for r in runs for layer in r.figures["layers"]],
        "slices": [
            {
                "name": r.name,
                "cycles": r.figures["cycles"],
                "mac_use": r.figures["mac_use"],
                "stalls": _stalls(r.figures),
                "compared_bytes": r.compared_bytes,
                "mismatches": r.mismatches,
                "first": r.first,
                "cached": r.cached,
            }
            for r in runs
        ],
    }
