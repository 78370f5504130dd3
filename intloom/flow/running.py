"""One run of a program: inputs in, backend, host parts, comparison, record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from intloom.arrays import Array
from intloom.common.errors import UsageError
from intloom.compiler.program.program import Program
from intloom.files import read_bytes
from intloom.flow.bundle import Bundle
from intloom.flow.checking import GOLDEN, Check, check_golden, check_onnxruntime, covering_layers, mark_attributed
from intloom.flow.float_kernels import FloatKernelAttribution, attribute_differences
from intloom.flow.host import HostSide, Int8, dequantize_array, output_quant, plain_quant, quantize_array
from intloom.flow.inputs import as_input
from intloom.flow.record import make_record, make_timeline, trace_events, write_run
from intloom.flow.regions import Runner, run_regions
from intloom.sim.backend import Backend, GoldenBackend, IsaBackend, RtlBackend
from intloom.sim.compare.divergence import Divergence, find_divergence
from intloom.sim.merge_results import merge_results
from intloom.sim.result import ProgressCallback, RunResult
from intloom.sim.rtl.bench import Bench
from intloom.sim.rtl.build import BuildWatch
from intloom.sim.rtl.detailed import DetailedBench, IcarusBench
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MemorySettings

USUAL_MEMORY = MemorySettings(read_latency=100, bandwidth=1.0, seed=1)
"""How memory behaves unless asked otherwise: as far away as DRAM, one beat a cycle for reads and writes together."""


class BackendName(StrEnum):
    """What runs a program."""

    GOLDEN = "golden"
    ISA = "isa"
    RTL = "rtl"


class BenchName(StrEnum):
    """How RTL is simulated."""

    FAST = "fast"
    DETAILED = "detailed"
    ICARUS = "icarus"


def open_bench(name: BenchName, *, waves: bool = False) -> Bench:
    """The bench called `name`; with `waves` the detailed one leaves those of the whole run in its folder."""
    if name is BenchName.DETAILED:
        return DetailedBench(waves=waves)
    return IcarusBench() if name is BenchName.ICARUS else FastBench()


@dataclass(frozen=True, kw_only=True)
class RtlOptions:
    """How the RTL is simulated."""

    bench: Bench = field(default_factory=FastBench)
    memory: MemorySettings = USUAL_MEMORY
    limit: int | None = None
    verilog: Path | None = None
    """Another accelerator than the generated one."""
    folder: Path | None = None
    on_build: BuildWatch | None = None
    """Told how far the build of a simulator is."""


@dataclass(frozen=True, eq=False)
class RegionRun:
    """One region's run."""

    program: Program
    inputs: Mapping[str, Int8]
    result: RunResult


@dataclass(frozen=True, eq=False)
class Execution:
    """A finished run."""

    program: Program
    """The program; of a model of several regions all together."""
    result: RunResult
    outputs: Mapping[str, Array]
    """The model's outputs; without the model at hand the accelerator's own, dequantized."""
    checks: tuple[Check, ...]
    inputs: Mapping[str, Int8]
    """What the accelerator was given."""
    within: Mapping[str, str] = field(default_factory=dict)
    """For layers that are fused into another: the layer in whose comparison theirs is contained."""
    region_runs: tuple[RegionRun, ...] = ()
    """The runs of the regions."""
    attribution: FloatKernelAttribution | None = None
    """Why onnxruntime alone differs, where it does."""

    @property
    def mismatches(self) -> int:
        """Bytes that differ in all comparisons without an attribution."""
        return sum(c.mismatches for c in self.checks)

    @property
    def golden_differs(self) -> bool:
        """Whether the run differs from the golden model, which onnxruntime's float kernels do not explain."""
        return any(c.mismatches for c in self.checks if c.against == GOLDEN)

    def record(self) -> dict[str, Any]:
        """The run as plain values; see `intloom.flow.record`."""
        record = make_record(self.program, self.result, self.checks, self.within)
        return {**record, "attribution": self.attribution.text if self.attribution else ""}

    def timeline(self) -> dict[str, Any]:
        """All instructions with their cycles."""
        return make_timeline(self.program, self.result)

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the run's folder; gives the record."""
        record = self.record()
        write_run(folder, record, self.timeline(), self.outputs, trace_events(self.program, self.result))
        return record


def open_backend(
    name: BackendName, bundle: Bundle, rtl: RtlOptions | None = None, *, keep_tensors: bool = False
) -> Backend:
    """The backend called `name`, ready to run the bundle's program; with `keep_tensors` for checks layer by layer."""
    if name is BackendName.GOLDEN:
        return GoldenBackend(*bundle.need_model("the golden model").regions)
    if name is BackendName.ISA:
        return IsaBackend(keep_tensors=keep_tensors)
    return open_rtl(rtl or RtlOptions(), keep_tensors=keep_tensors)


def open_rtl(options: RtlOptions, *, keep_tensors: bool = False) -> RtlBackend:
    """The RTL backend as `options` ask for it."""
    text = None if options.verilog is None else read_bytes(options.verilog, "Verilog").decode("utf-8", "replace")
    return RtlBackend(
        bench=options.bench,
        memory=options.memory,
        limit=options.limit,
        verilog=text,
        folder=options.folder,
        keep_tensors=keep_tensors,
        on_build=options.on_build,
    )


def input_shapes(bundle: Bundle, host: HostSide | None) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what a run must be given."""
    if host is not None:
        return host.input_shapes()
    return {name: quant.shape for name, quant in plain_quant(bundle.program).items()}


def open_host(bundle: Bundle) -> HostSide | None:
    """The model's float parts, if the model is at hand."""
    return None if bundle.folded is None else HostSide(bundle.folded)


def execute(
    bundle: Bundle,
    backend: Backend,
    feeds: Mapping[str, Array],
    *,
    host: HostSide | None = None,
    check: bool = False,
    progress: ProgressCallback | None = None,
) -> Execution:
    """Runs the bundle's program on `feeds`, the model's inputs by name.

    Raises
    ------
    UsageError
        The feeds are not the model's inputs, or `check` is asked for without the model at hand.
    SimulationError
        The simulated hardware stopped, hung or died.
    """
    if len(bundle.programs) > 1:
        bundle.need_model("a program of several regions")
    feeds = _as_inputs(feeds, input_shapes(bundle, host))
    region_runs: list[RegionRun] = []

    def run(index: int, values: Mapping[str, Int8]) -> Mapping[str, Int8]:
        program = bundle.programs[index]
        region_runs.append(RegionRun(program, values, backend.run(program, values, progress=progress)))
        return region_runs[-1].result.outputs

    inputs = _run_all(bundle, host, feeds, run)
    result = merge_results([t.result for t in region_runs])
    outputs = _model_outputs(bundle, host, feeds, result)
    done = Execution(bundle.program, result, outputs, (), inputs, region_runs=tuple(region_runs))
    return _checked(done, bundle, backend.name, feeds) if check else done


def _checked(done: Execution, bundle: Bundle, backend: str, feeds: Mapping[str, Array]) -> Execution:
    """The run with its comparisons."""
    result = done.result
    folded = bundle.need_model("--check")
    checks: list[Check] = []
    if backend != BackendName.GOLDEN:
        checks += check_golden(bundle.program, folded, done.inputs, result)
    within = covering_layers(folded.graph, checks) if checks else {}
    wrong = any(c.mismatches for c in checks)
    attribution = None
    if bundle.model is not None:
        theirs = check_onnxruntime(folded, bundle.model, feeds, result.outputs, bundle.program.params.match)
        if not wrong and any(c.mismatches for c in theirs):
            attribution = attribute_differences(folded, bundle.model, feeds, done.inputs)
        checks += mark_attributed(theirs) if attribution is not None and attribution.accepted else theirs
    return replace(done, checks=tuple(checks), within=within, attribution=attribution)


def _as_inputs(feeds: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    if unknown := sorted(set(feeds) - set(shapes)):
        raise UsageError(f"input must be one of {', '.join(shapes)}, not {unknown[0]!r}")
    for name, shape in shapes.items():
        if name not in feeds:
            raise UsageError(f"input {name!r} of shape {list(shape)} is missing")
    return {name: as_input(name, feeds[name], tuple(shape)) for name, shape in shapes.items()}


def _run_all(bundle: Bundle, host: HostSide | None, feeds: Mapping[str, Array], run: Runner) -> dict[str, Int8]:
    """Run every region; gives what the accelerator got from the host."""
    if host is not None and bundle.folded is not None:
        return run_regions(bundle.folded, host, feeds, run)[0]
    program = bundle.program
    inputs = {n: quantize_array(feeds[n], q, program.tensor(n).shape) for n, q in plain_quant(program).items()}
    run(0, inputs)
    return inputs


def _model_outputs(
    bundle: Bundle, host: HostSide | None, feeds: Mapping[str, Array], result: RunResult
) -> dict[str, Array]:
    if host is not None:
        made = host.after(result.outputs, feeds)
        return {name: made[name] for name in bundle.output_names if name in made}
    return {n: dequantize_array(result.outputs[n], q) for n, q in output_quant(bundle.program).items()}


def locate(execution: Execution, rtl: RtlOptions, waves_in: Path | None = None) -> Divergence | None:
    """The first instruction of an RTL run that wrote anything wrong; with `waves_in` the waves around it go there."""
    text = None if rtl.verilog is None else read_bytes(rtl.verilog, "Verilog").decode("utf-8", "replace")
    for run in execution.region_runs:
        found = find_divergence(run.program, run.inputs, verilog=text, memory=rtl.memory, waves_in=waves_in)
        if found is not None:
            return found
    return None
