"""The best points of an exploration in RTL: every byte compared, and the forecast's error."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intloom.exploration.explore import Exploration, Tell
from intloom.exploration.points import memory_of
from intloom.flow.bundle import Bundle
from intloom.flow.compiling import compile_model
from intloom.flow.inputs import read_inputs
from intloom.flow.running import execute, open_backend, open_host
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
    results, jobs = [], [(point, model) for point in done.front[:count] for model in models]
    for number, (point, model) in enumerate(jobs):
        tell("RTL", number, len(jobs))
        asked = done.budget
        timing = memory_of(point.params, point.clock.mhz, asked.bandwidth, asked.latency)
        compiled = compile_model(model, point.params, dims=dims, memory=timing)
        bundle = Bundle(compiled.programs, model, compiled.folded, compiled.inputs, compiled.outputs)
        settings = MemorySettings(read_latency=timing.read_latency, bandwidth=timing.bandwidth)
        backend = open_backend("rtl", bundle, RtlOptions(memory=settings), keep_tensors=True)
        run = execute(bundle, backend, read_inputs([], bundle.inputs, 0), host=open_host(bundle), check=True)
        results.append(
            Verified(
                name=done.name(point),
                network=model.stem,
                predicted=compiled.program.predicted_cycles,
                cycles=run.cycles,
                mismatches=run.mismatches,
                compared_bytes=sum(check.bytes for check in run.checks),
            )
        )
    tell("RTL", len(jobs), len(jobs))
    return results
