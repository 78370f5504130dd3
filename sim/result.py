"""What one run of a program gives, whichever backend ran it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.sim.rtl.status import Pulses

Arrays = Mapping[str, NDArray[np.int8]]


@dataclass(frozen=True, kw_only=True)
class LayerResult:
    """What one layer cost in RTL. Layers overlap; `intloom.sim.rtl.layers.spans` gives every cycle to one."""

    name: str
    op: str
    macs: int
    cycles: int
    mac_use: float
    """True multiply-accumulates over what the array could do in these cycles, 0 to 1."""
    stalls: Mapping[str, int]
    """Stalled cycles by unit and cause, as the hardware's counters name them."""
    busy: Mapping[str, int]
    """Busy cycles by unit."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Outputs of a program and, from RTL, what the run cost."""

    backend: str
    outputs: Arrays
    wall_s: float
    build_s: float = 0.0
    cycles: int = 0
    macs: int = 0
    mac_use: float = 0.0
    sim_hz: float = 0.0
    dram_bytes: int = 0
    conditions: Mapping[str, int | float] = field(default_factory=dict)
    """How the simulated memory behaved."""
    counters: Mapping[str, int] = field(default_factory=dict)
    layers: tuple[LayerResult, ...] = ()
    tensors: Arrays = field(default_factory=dict)
    """Every tensor that passed through memory, as it stood when it was complete; where the backend keeps them."""
    memory: NDArray[np.uint8] | None = None
    """The whole memory after the run."""
    pulses: Pulses | None = None
    """Cycles at which instructions started and were done; with hardware that has a trace port."""
    origin: int = 0
    """Cycle of the trace at which the program was started."""

    def to_dict(self) -> dict[str, Any]:
        """The run's figures as plain values, for JSON."""
        names = ("backend", "cycles", "macs", "mac_use", "sim_hz", "wall_s", "build_s", "dram_bytes")
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
        return {**{n: getattr(self, n) for n in names}, "layers": layers, "counters": dict(self.counters)}


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come."""

    cycle: int
    layer: str
    layers_done: int
    layers: int
    sim_hz: float
    seconds_left: float
    """By the compiler's forecast of the program's cycles."""


ProgressCallback = Callable[[Progress], None]
