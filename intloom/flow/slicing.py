"""Chosen layers of a network alone in RTL, with golden inputs; results are kept until something that counts changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from compiler.frontend import FoldedModel
from compiler.schedule import compile_graph
from hw.spec.params import HardwareParams
from sim.compare import compare
from sim.result_cache import run_cached
from sim.rtl.backend import RtlBackend
from sim.slices import Slice, blocks, extract, golden_tensors, is_trivial, make_slice, select

from .host import Int8


@dataclass(frozen=True)
class SliceRun:
    """One block of layers, run alone."""

    name: str
    figures: Mapping[str, Any]
    compared_bytes: int
    mismatches: int
    first: str
    cached: bool


def run_slices(
    folded: FoldedModel,
    params: HardwareParams,
    inputs: Mapping[str, Int8],
    pattern: str,
    open_backend: Callable[[], RtlBackend],
    *,
    jobs: int = 1,
    tell: Callable[[str, int, int], None] | None = None,
) -> list[SliceRun]:
    """Runs every block that has layers matching `pattern`, such as `model.4.*`; results in the network's order.

    Raises
    ------
    UsageError
        The pattern matches nothing.
    """
    chosen = set(select(folded.graph, pattern))
    tensors = golden_tensors(folded.graph, inputs, params.match)
    slices = []
    for name, nodes in blocks(folded.graph).items():
        kept = [n for n in nodes if n in chosen]
        if kept and not is_trivial(extract(folded.graph, kept, name)):
            slices.append(make_slice(folded.graph, kept, name, tensors))
    report = tell or (lambda _stage, _done, _all: None)
    done: dict[str, SliceRun] = {}
    # Threads suffice: the simulators are processes of their own.
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_run, part, params, open_backend()) for part in slices]
        try:
            for future in as_completed(futures):
                result = future.result()
                done[result.name] = result
                report("slices", len(done), len(slices))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[part.name] for part in slices]


def _run(part: Slice, params: HardwareParams, backend: RtlBackend) -> SliceRun:
    result = run_cached(compile_graph(part.graph, params), part.inputs, backend)
    found = compare(part.expected, result.outputs)
    first = str(found.mismatches[0]) if found.mismatches else ""
    return SliceRun(part.name, result.figures, found.compared_bytes, found.differing_bytes, first, result.cached)


def slices_record(name: str, params: HardwareParams, runs: list[SliceRun], started: float) -> dict[str, Any]:
    """All slices together, with the keys of a whole run's record."""
    cycles = sum(int(r.figures["cycles"]) for r in runs)
    macs = sum(int(r.figures["macs"]) for r in runs)
    return {
        "name": name,
        "backend": "rtl",
        "cycles": cycles,
        "macs": macs,
        "mac_use": macs / (cycles * params.macs) if cycles else 0.0,
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
                "compared_bytes": r.compared_bytes,
                "mismatches": r.mismatches,
                "first": r.first,
                "cached": r.cached,
            }
            for r in runs
        ],
    }
