"""The best points of an exploration in RTL: every byte compared, and the forecast's error."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intloom.compiler.program.program import MemoryTiming
from intloom.exploration.explore import Exploration, Tell
from intloom.exploration.points import memory_of
from intloom.flow.bundle import Bundle
from intloom.flow.compiling import compile_model
from intloom.flow.inputs import read_inputs
from intloom.flow.running import execute, open_backend
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions


@dataclass(frozen=True)
class Verified:
    """One configuration and model in RTL."""

    name: str
    network: str
    predicted: int
    cycles: int
    mismatches: int
    compared_bytes: int

    @property
    def equal(self) -> bool:
        """Whether all bytes are equal."""
        return self.mismatches == 0 and self.compared_bytes > 0

    @property
    def error(self) -> float:
        """Relative error of the forecast; negative when it is too low."""
        return self.predicted / self.cycles - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "error": self.error, "equal": self.equal}


def verify(
    done: Exploration, models: Sequence[Path], count: int, dims: Mapping[str, int], tell: Tell
) -> list[Verified]:
    """Run the first `count` points of the front in RTL, each model once, with one accelerator on the port."""
    results, jobs = list[Verified](), [(point, model) for point in done.front[:count] for model in models]
    for point, model in jobs:
        tell("RTL", len(results), len(jobs))
        timing = memory_of(point.params, point.clock.mhz, done.budget.bandwidth, done.budget.latency)
        bundle = compile_model(model, point.params, dims=dims, memory=timing)
        results.append(run_point(done.name(point), model.stem, bundle, timing))
    tell("RTL", len(jobs), len(jobs))
    return results


def run_point(name: str, network: str, bundle: Bundle, timing: MemoryTiming) -> Verified:
    """Run a compiled model in RTL on one configuration with this memory, and compare every byte."""
    settings = MemorySettings(**asdict(timing))
    backend = open_backend("rtl", bundle, RtlOptions(memory=settings), keep_tensors=True)
    run = execute(bundle, backend, read_inputs([], bundle.inputs, 0), check=True)
    return Verified(
        name=name,
        network=network,
        predicted=bundle.program.predicted_cycles,
        cycles=run.cycles,
        mismatches=run.mismatches,
        compared_bytes=sum(check.bytes for check in run.checks),
    )
