"""One way to run a program, whatever runs it: golden model, instruction simulator or RTL."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.sim.result import Arrays, Progress, ProgressCallback, RunResult
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.tensor_snapshots import tensors_by_last_store

__all__ = ["Backend", "GoldenBackend", "IsaBackend", "RtlBackend"]


class Backend(Protocol):
    """Runs programs."""

    name: str

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Outputs of `program` for int8 `inputs` by name, and what the run cost."""


class GoldenBackend:
    """The golden model; it runs the graph from which the program was compiled.

    Parameters
    ----------
    graphs
        That graph; for a model of several regions the graph of each.
    """

    name = "golden"

    def __init__(self, *graphs: IntGraph) -> None:
        self._graphs = graphs

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Outputs of the graph, rounded as the program's hardware rounds."""
        from intloom.sim.golden import run_graph

        start = time.monotonic()
        outputs = run_graph(self._graphs[program.region], inputs, match=program.params.match)
        macs = sum(layer.macs for layer in program.layers)
        return RunResult(backend=self.name, outputs=outputs, wall_s=time.monotonic() - start, macs=macs)


class IsaBackend:
    """The instruction simulator: program order, no timing.

    Parameters
    ----------
    check
        Also prove that no instruction races with another, reads what nobody wrote, or leaves its memory.
    keep_tensors
        Keep every tensor that passes through memory, not only the outputs.
    """

    name = "isa"

    def __init__(self, check: bool = False, *, keep_tensors: bool = False) -> None:
        self._check = check
        self._keep_tensors = keep_tensors

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Outputs of the program; `progress` counts instructions as cycles."""
        from intloom.sim.isa_sim import IsaSimulator

        start = time.monotonic()
        simulator = IsaSimulator(program, check=self._check)
        simulator.reset(inputs)
        completed = tensors_by_last_store(program) if self._keep_tensors else {}
        tensors: dict[str, NDArray[np.int8]] = {}
        while not simulator.finished:
            index = simulator.step()
            tensors |= {p.name: simulator.tensor(p.name) for p in completed.get(index, ())}
            if progress is not None and index % _REPORT_EVERY == 0:
                progress(_progress(program, index, time.monotonic() - start))
        wall_s = time.monotonic() - start
        memory = simulator.machine.dram.reshape(-1).view(np.uint8)
        macs = sum(layer.macs for layer in program.layers)
        return RunResult(
            backend=self.name,
            outputs=simulator.outputs(),
            wall_s=wall_s,
            macs=macs,
            tensors=tensors,
            memory=memory,
        )


_REPORT_EVERY = 16


def _progress(program: Program, index: int, seconds: float) -> Progress:
    current = program.provenance[index].layer
    count = len(program.instructions)
    return Progress(
        cycle=index,
        layer=program.layers[current].name if 0 <= current < len(program.layers) else "",
        layers_done=max(current, 0),
        layers=len(program.layers),
        sim_hz=index / seconds if seconds else 0.0,
        seconds_left=seconds * (count - index) / index if index else 0.0,
    )
