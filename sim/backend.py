"""Backends: everything that runs a program, registered by name with its capabilities."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.footprint import addresses
from intloom.compiler.program.memory import without_pairs
from intloom.compiler.program.program import Program
from intloom.sim.board.address import open_board
from intloom.sim.board.backend import BoardBackend
from intloom.sim.local_tensors import LocalTensors, result_access
from intloom.sim.parallel.backend import ParallelRtlBackend
from intloom.sim.result import Arrays, Progress, ProgressCallback, RunResult
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.tensor_snapshots import tensors_by_last_store

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendKind",
    "BackendRequest",
    "Capabilities",
    "GoldenBackend",
    "IsaBackend",
    "RtlBackend",
    "backend_kind",
    "open_rtl",
    "register_backend",
]


class Backend(Protocol):
    """Runs programs."""

    name: str

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Result of `program` for int8 `inputs` by name."""


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
        """Outputs of the graph, in the rounding mode of the program's hardware."""
        from intloom.sim.golden import run_graph

        start = time.monotonic()
        # The mode of rounding belongs to the hardware, which has one requantizer.
        outputs = run_graph(self._graphs[program.region], inputs, match=program.params.match)
        return RunResult(
            backend=self.name,
            outputs=outputs,
            wall_s=time.monotonic() - start,
            macs=program.macs,
            vector_macs=program.vector_macs,
        )


class IsaBackend:
    """The instruction simulator: program order, no timing.

    Parameters
    ----------
    check
        Also check that no instruction races with another, reads uninitialized words, or exceeds its memory.
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
        local = LocalTensors(program)
        while not simulator.finished:
            index = simulator.step()
            tensors |= {p.name: simulator.tensor(p.name) for p in completed.get(index, ())}
            if self._keep_tensors and (result := local.results.get(index)) is not None:
                words = addresses(result_access(program, result))
                content = simulator.machine.scratch.view(np.uint8)[words]
                local.put(result, np.arange(len(words)), content, np.ones(content.shape, bool))
            if progress is not None and index % _REPORT_EVERY == 0:
                progress(_progress(program, index, time.monotonic() - start))
        wall_s = time.monotonic() - start
        memory = simulator.machine.dram.reshape(-1).view(np.uint8)
        return RunResult(
            backend=self.name,
            outputs=simulator.outputs(),
            wall_s=wall_s,
            macs=program.macs,
            vector_macs=program.vector_macs,
            tensors=without_pairs(tensors | (local.tensors() if self._keep_tensors else {})),
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


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend supports; options that need more are refused."""

    cycle_accurate: bool = False
    """Counts cycles; a result has counters and the cost of every layer."""
    memory_timing: bool = False
    """Simulates memory latency, bandwidth and stalls, and has a limit of cycles."""
    waves: bool = False
    """Records waves."""
    layer_jobs: bool = False
    """Simulates segments of a program, or chosen layers or tiles as programs of their own, several at once."""
    write_log: bool = False
    """Records every write, so that the first divergence can be located."""
    is_reference: bool = False
    """Is itself the golden model: a comparison with that one proves nothing."""
    progress_unit: str = "instructions"


@dataclass(frozen=True, kw_only=True)
class BackendRequest:
    """What a backend is opened with."""

    graphs: Callable[[], Sequence[IntGraph]]
    """The graph of each region; raises `UsageError` without the model."""
    rtl: RtlOptions = field(default_factory=RtlOptions)
    keep_tensors: bool = False
    """Keep every tensor that passes through memory, for checks layer by layer."""
    address: str = ""
    """Of a board: what follows the colon in the backend's name."""


@dataclass(frozen=True, kw_only=True)
class BackendKind:
    """A backend as users choose it."""

    name: str
    capabilities: Capabilities
    open: Callable[[BackendRequest], Backend]


BACKENDS: dict[str, BackendKind] = {}
"""All backends by name."""


def register_backend(kind: BackendKind) -> None:
    """Make a backend selectable by its name."""
    if kind.name in BACKENDS:
        raise ValueError(f"backend {kind.name!r} is already registered")
    BACKENDS[kind.name] = kind


def backend_kind(name: str) -> BackendKind:
    """The backend called `name`; the name of a board has its address after a colon."""
    kind, colon, _ = name.partition(":")
    if kind not in BACKENDS or (colon and kind != BoardBackend.name):
        raise UsageError(f"backend must be one of {', '.join(BACKENDS)}, not {name!r}; a board is board:ADDRESS")
    return BACKENDS[kind]


def open_rtl(options: RtlOptions, *, keep_tensors: bool = False) -> RtlBackend:
    """The RTL backend with these options."""
    kind = ParallelRtlBackend if options.jobs > 1 else RtlBackend
    return kind(options, keep_tensors=keep_tensors)


register_backend(
    BackendKind(
        name=GoldenBackend.name,
        capabilities=Capabilities(is_reference=True),
        open=lambda request: GoldenBackend(*request.graphs()),
    )
)
register_backend(
    BackendKind(
        name=IsaBackend.name,
        capabilities=Capabilities(),
        open=lambda request: IsaBackend(keep_tensors=request.keep_tensors),
    )
)
register_backend(
    BackendKind(
        name=RtlBackend.name,
        capabilities=Capabilities(
            cycle_accurate=True,
            memory_timing=True,
            waves=True,
            layer_jobs=True,
            write_log=True,
            progress_unit="cycles",
        ),
        open=lambda request: open_rtl(request.rtl, keep_tensors=request.keep_tensors),
    )
)
register_backend(
    BackendKind(name=BoardBackend.name, capabilities=Capabilities(), open=lambda request: open_board(request.address))
)
