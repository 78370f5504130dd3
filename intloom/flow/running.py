"""Execution of a program: inputs, backend, host parts, comparison."""

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from intloom.arrays import Array
from intloom.common.errors import UsageError
from intloom.flow.bundle import Bundle
from intloom.flow.checking import check_golden, compare_reference, covering_layers
from intloom.flow.first_divergence import first_difference
from intloom.flow.host import Int8, dequantize_array, output_quant, plain_quant, quantize_array
from intloom.flow.inputs import as_input
from intloom.flow.model_interface import NodeArg
from intloom.flow.reference import Reference, reference_of
from intloom.flow.regions import Runner, run_regions
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.backend import Backend, BackendRequest, backend_kind
from intloom.sim.checks import Check
from intloom.sim.compare.divergence import find_divergence
from intloom.sim.golden import run_graph
from intloom.sim.merge_results import merge_results
from intloom.sim.result import ProgressCallback, RunResult
from intloom.sim.rtl.options import RtlOptions


def open_backend(name: str, bundle: Bundle, rtl: RtlOptions | None = None, *, keep_tensors: bool = False) -> Backend:
    """Open the backend called `name`; `keep_tensors` records tensors for the comparison of each layer."""
    request = BackendRequest(
        graphs=lambda: bundle.need_model(f"backend {name}").regions,
        rtl=rtl or RtlOptions(),
        keep_tensors=keep_tensors,
        address=name.partition(":")[2],
    )
    return backend_kind(name).open(request)


def execute(
    bundle: Bundle,
    backend: Backend,
    feeds: Mapping[str, Array],
    *,
    check: bool = False,
    progress: ProgressCallback | None = None,
) -> RunResult:
    """Run the bundle's program on `feeds`, the model's inputs by name.

    Raises
    ------
    UsageError
        The feeds are not the model's inputs, or `check` is set and the model is not available.
    SimulationError
        The simulated hardware stopped with an error or hung, or the simulator died.
    """
    if len(bundle.programs) > 1:
        bundle.need_model("a program of several regions")
    feeds = _as_inputs(feeds, {i.name: i for i in bundle.inputs})
    results: list[RunResult] = []
    started, accelerated = time.perf_counter(), 0.0
    # With one region the inputs of the graph are known before the run, so the expected values are computed meanwhile.
    ahead: list[Future[Expected]] = []

    def run(index: int, values: Mapping[str, Int8]) -> Mapping[str, Int8]:
        if check and len(bundle.programs) == 1:
            ahead.append(pool.submit(_expected, bundle, feeds, values))
        nonlocal accelerated
        before = time.perf_counter()
        result = backend.run(bundle.programs[index], values, progress=progress)
        accelerated += time.perf_counter() - before
        results.append(replace(result, inputs=values))
        return result.outputs

    pool = ThreadPoolExecutor(1)
    try:
        inputs = _run_all(bundle, feeds, run)
        merged = merge_results(results)
        outputs = _model_outputs(bundle, feeds, merged)
        host_s = time.perf_counter() - started - accelerated
        result = replace(merged, inputs=inputs, model_outputs=outputs, host_s=host_s)
        if not check:
            return result
        return _checked(result, bundle, feeds, ahead[0].result() if ahead else _expected(bundle, feeds, inputs))
    finally:
        # After an error the expected values are not needed, so do not wait for them.
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, eq=False)
class Expected:
    """What a run is compared with."""

    golden: Mapping[str, Int8]
    """Every tensor, from the golden model."""
    reference: Reference | None = None
    """The runtime of the file; None where the comparison has no meaning."""
    again: Mapping[str, Mapping[str, Int8]] = field(default_factory=dict)
    """Tensors that a runtime computes too, by its name."""


def _expected(bundle: Bundle, feeds: Mapping[str, Array], inputs: Mapping[str, Int8]) -> Expected:
    folded, match = bundle.need_model("--check"), bundle.program.params.match
    golden = run_graph(folded.graph, inputs, match=match, keep=True)
    # Rounding mode `exact` differs from fp32 arithmetic by design.
    if bundle.model is None or match is not RoundingMode.ORT:
        return Expected(golden)
    reference = reference_of(folded, bundle.model, micro=bundle.micro)
    return Expected(golden, reference, reference.tensors(feeds, {**inputs, **golden}))


def _checked(result: RunResult, bundle: Bundle, feeds: Mapping[str, Array], expected: Expected) -> RunResult:
    """The result with its comparisons."""
    folded = bundle.need_model("--check")
    checks = list[Check]()
    if not backend_kind(result.backend).capabilities.is_reference:
        checks += check_golden(expected.golden, folded, result)
    covered_by = covering_layers(folded.graph, checks) if checks else {}
    original = None
    if expected.reference is not None:
        tensors = {**result.inputs, **expected.golden, **result.tensors, **result.outputs}
        for runtime, values in expected.again.items():
            checks += compare_reference(folded, values, tensors, runtime)
        checks += expected.reference.check_outputs(feeds, result.model_outputs)
        original = expected.reference.compare_original(feeds, result.model_outputs)
    first = first_difference(bundle.program, checks)
    return replace(result, checks=tuple(checks), covered_by=covered_by, first_divergence=first, original=original)


def _as_inputs(feeds: Mapping[str, Array], known: Mapping[str, NodeArg]) -> dict[str, Array]:
    if unknown := sorted(set(feeds) - set(known)):
        raise UsageError(f"input must be one of {', '.join(known)}, not {unknown[0]!r}")
    for name, wanted in known.items():
        if name not in feeds:
            raise UsageError(f"input {name!r} of shape {list(wanted.shape)} is missing; add it to the feeds")
    return {
        name: as_input(name, feeds[name], tuple(wanted.shape), boolean=wanted.dtype == bool)
        for name, wanted in known.items()
    }


def _run_all(bundle: Bundle, feeds: Mapping[str, Array], run: Runner) -> dict[str, Int8]:
    """Run every region; return the accelerator's inputs."""
    if bundle.host is not None and bundle.folded is not None:
        return run_regions(bundle.folded, bundle.host, feeds, run)[0]
    program = bundle.program
    inputs = {n: quantize_array(feeds[n], q, program.tensor(n).shape) for n, q in plain_quant(program).items()}
    run(0, inputs)
    return inputs


def _model_outputs(bundle: Bundle, feeds: Mapping[str, Array], result: RunResult) -> dict[str, Array]:
    if bundle.host is not None:
        made = bundle.host.after(result.outputs, feeds)
        return {name: made[name] for name in (o.name for o in bundle.outputs) if name in made}
    return {n: dequantize_array(result.outputs[n], q) for n, q in output_quant(bundle.program).items()}


def can_locate(result: RunResult) -> bool:
    """Whether a run differs from the golden model and its first wrong write can be located."""
    return result.golden_differs and backend_kind(result.backend).capabilities.write_log


def locate(bundle: Bundle, result: RunResult, rtl: RtlOptions) -> RunResult:
    """Find the first instruction of an RTL run with a wrong write; the result has it as its first divergence."""
    layers = [layer.name for layer in bundle.program.layers]
    for program, region in zip(bundle.programs, result.regions, strict=True):
        first = find_divergence(program, region.inputs, rtl)
        if first is not None:
            index = None if first.layer_index is None else layers.index(first.layer)
            return replace(result, first_divergence=replace(first, region=program.region, layer_index=index))
    return result
