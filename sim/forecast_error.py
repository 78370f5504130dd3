"""The compiler's forecast beside what the RTL took."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory_port import MemoryTiming
from intloom.compiler.program.program import Program
from intloom.sim.result import RunResult
from intloom.sim.rtl.job import MemorySettings


@dataclass(frozen=True)
class ForecastComparison:
    """A layer, or a whole program: cycles as forecast and as measured."""

    name: str
    expected: int
    measured: int

    @property
    def error(self) -> float:
        """By how much of the measured cycles the forecast is off; negative when it is too low."""
        return self.expected / self.measured - 1 if self.measured else 0.0


def timing_of(memory: MemorySettings) -> MemoryTiming:
    """What the forecast knows of a run's memory; random stalls are not foreseen."""
    return MemoryTiming(
        read_latency=memory.read_latency, write_latency=memory.write_latency, bandwidth=memory.bandwidth
    )


def compare_forecast(
    program: Program, result: RunResult, memory: MemorySettings
) -> tuple[ForecastComparison, tuple[ForecastComparison, ...]]:
    """The whole program's forecast, and every layer's, against an RTL run with this memory."""
    expected = forecast(
        program.instructions, program.provenance, len(program.layers), program.params, timing_of(memory)
    )
    layers = tuple(
        ForecastComparison(layer.name, cycles, layer.cycles)
        for layer, cycles in zip(result.layers, expected.layers, strict=False)
    )
    return ForecastComparison(program.name, expected.cycles, result.cycles), layers


def worst(layers: tuple[ForecastComparison, ...], least: int) -> ForecastComparison | None:
    """The layer of at least `least` cycles whose forecast is furthest off."""
    return max((f for f in layers if f.measured >= least), key=lambda f: abs(f.error), default=None)
