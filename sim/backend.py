"""One way to run a program, whatever runs it: golden model, instruction simulator or RTL."""

from __future__ import annotations

import time
from typing import Protocol

from compiler.ir import IntGraph
from compiler.program.program import Program
from sim.result import Arrays, ProgressCallback, RunResult
from sim.rtl.backend import RtlBackend

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
    graph
        That graph.
    """

    name = "golden"

    def __init__(self, graph: IntGraph) -> None:
        self._graph = graph

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Outputs of the graph, rounded as the program's hardware rounds."""
        from sim.golden import run_graph

        start = time.monotonic()
        outputs = run_graph(self._graph, inputs, match=program.params.match)
        macs = sum(layer.macs for layer in program.layers)
        return RunResult(backend=self.name, outputs=outputs, wall_s=time.monotonic() - start, macs=macs)
