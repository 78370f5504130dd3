"""The result of a run: one dataclass for every backend and for the checks that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.sim.checks import GOLDEN, Check, FirstDivergence, OriginalComparison
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.status import Pulses, Snapshot, Status

Arrays = Mapping[str, NDArray[np.int8]]


@dataclass(frozen=True, kw_only=True)
class LayerResult:
    """Cycles and stalls of one layer in RTL. Layers overlap; `sim.rtl.layers.spans` assigns each cycle to one."""

    name: str
    op: str
    macs: int
    """Multiply-accumulates of the array, without padding."""
    vector_macs: int
    """Multiply-accumulates of the vector unit, without padding."""
    cycles: int
    mac_use: float
    """`macs` over the products that the array could make in these cycles, 0 to 1."""
    stalls: Mapping[str, int]
    """Stalled cycles by unit and cause, as the hardware's counters name them."""
    busy: Mapping[str, int]
    """Busy cycles by unit."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Outputs of a program; from RTL also cycles, counters and trace; after `execute` also model outputs and checks."""

    backend: str
    outputs: Arrays
    wall_s: float
    build_s: float = 0.0
    cycles: int = 0
    macs: int = 0
    vector_macs: int = 0
    mac_use: float = 0.0
    sim_hz: float = 0.0
    dram_bytes: int = 0
    conditions: Mapping[str, int | float] = field(default_factory=dict)
    """Settings of the simulated memory."""
    counters: Mapping[str, int] = field(default_factory=dict)
    clock_stopped: Mapping[str, float] = field(default_factory=dict)
    """Share of the cycles in which each gated component's clock was stopped, 0 to 1."""
    layers: tuple[LayerResult, ...] = ()
    tensors: Arrays = field(default_factory=dict)
    """Every tensor stored to memory, with its value after its last store; where the backend keeps them."""
    memory: NDArray[np.uint8] | None = None
    """The whole memory after the run."""
    pulses: Pulses | None = None
    """Cycles at which instructions started and were done; with hardware that has a trace port."""
    origin: int = 0
    """Cycle of the trace at which the program was started."""
    report: HostReport | None = None
    """RTL: what the host driver read at the end."""
    status: Status | None = None
    """RTL: the simulator's last status block."""
    snapshots: tuple[Snapshot, ...] = ()
    """RTL: all counters at the end of every layer."""
    writes: NDArray[np.void] | None = None
    """RTL: the write log, where the run was asked for one."""
    inputs: Arrays = field(default_factory=dict)
    """The quantized inputs that the host passed to the accelerator."""
    regions: tuple[RunResult, ...] = ()
    """The results of a model's regions, in order."""
    host_s: float = 0.0
    """Seconds of the host's parts around the accelerator."""
    model_outputs: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """The model's outputs after the host's part; without the model the accelerator's own, dequantized."""
    checks: tuple[Check, ...] = ()
    """Comparisons with the golden model and with onnxruntime."""
    original: OriginalComparison | None = None
    """Distance from the user's file in plain onnxruntime; None without a comparison."""
    covered_by: Mapping[str, str] = field(default_factory=dict)
    """For each layer without a comparison of its own: the layer whose comparison covers it."""
    first_divergence: FirstDivergence | None = None
    """The first difference, if a check found one."""

    @property
    def mismatches(self) -> int:
        """Differing bytes of all checks."""
        return sum(c.mismatches for c in self.checks)

    @property
    def golden_differs(self) -> bool:
        """Whether the run differs from the golden model."""
        return any(c.mismatches for c in self.checks if c.against == GOLDEN)

    def to_dict(self) -> dict[str, Any]:
        """The run's figures as plain values, for JSON."""
        names = ("backend", "cycles", "macs", "vector_macs", "mac_use", "sim_hz", "wall_s", "build_s", "dram_bytes")
        layers = [
            {
                "name": layer.name,
                "op": layer.op,
                "cycles": layer.cycles,
                "mac_use": layer.mac_use,
                "stalls": dict(layer.stalls),
            }
            for layer in self.layers
        ]
        kept = {"counters": dict(self.counters), "clock_stopped": dict(self.clock_stopped)}
        return {**{n: getattr(self, n) for n in names}, "layers": layers, **kept}


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run."""

    cycle: int
    layer: str
    layers_done: int
    layers: int
    sim_hz: float
    seconds_left: float
    """By the compiler's forecast of the cycles."""


ProgressCallback = Callable[[Progress], None]
