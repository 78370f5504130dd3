"""The error of the compiler's cycle forecast against RTL."""

from dataclasses import dataclass

from intloom.compiler.program.forecast import forecast_of
from intloom.compiler.program.layers import chains
from intloom.compiler.program.program import MemoryTiming, Program
from intloom.sim.result import RunResult


@dataclass(frozen=True)
class ForecastComparison:
    """Forecast and measured cycles of a chain of layers or a whole program."""

    name: str
    expected: int
    measured: int

    @property
    def error(self) -> float:
        """Relative error of the forecast; negative when it is too low."""
        return self.expected / self.measured - 1 if self.measured else 0.0


def compare_forecast(
    program: Program, result: RunResult, memory: MemoryTiming
) -> tuple[ForecastComparison, tuple[ForecastComparison, ...]]:
    """The whole program's forecast, and every chain's, against an RTL run with this memory.

    The forecast does not include random stalls.
    Layers of a chain take turns, so the cycles of one of them are of no use by themselves.
    """
    expected = forecast_of(program, memory)
    errors = tuple(
        ForecastComparison(
            " to ".join(dict.fromkeys(program.layers[k].name for k in (chain.layers[0], chain.layers[-1]))),
            sum(expected.layers[k] for k in chain.layers),
            sum(result.layers[k].cycles for k in chain.layers),
        )
        for chain in chains(program)
        if chain.layers[-1] < len(result.layers)
    )
    return ForecastComparison(program.name, expected.cycles, result.cycles), errors


def worst(found: tuple[ForecastComparison, ...], least: int) -> ForecastComparison | None:
    """The chain of at least `least` cycles with the largest forecast error."""
    return max((f for f in found if f.measured >= least), key=lambda f: abs(f.error), default=None)
