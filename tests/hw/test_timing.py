"""The latencies of the specification against those of the components."""

import random
from itertools import product

import pytest

from intloom.compiler.program.cost import instruction_cost
from intloom.hw import ports
from intloom.hw.affine import AffineLane
from intloom.hw.control.run_control import HALT_LATENCY
from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import MacArray
from intloom.hw.mac.array.pixel_fetcher import PixelFetcher
from intloom.hw.mac.array.product import LutProduct
from intloom.hw.mac.epilogue.epilogue import Epilogue
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.residual_adder import ResidualAdder
from intloom.hw.mac.epilogue.table_lookup import TableLookup
from intloom.hw.spec import timing
from intloom.hw.spec.isa import BY_KIND, AccessPattern, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.depthwise_columns import DepthwiseColumns
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from intloom.hw.vector.operand_fetcher import OperandFetcher
from intloom.hw.vector.pool import SLIDE_TAPS, Pool
from intloom.hw.vector.slicer import Slicer
from tests.hw.instructions import BenchInstructions
from tests.hw.vector.bench import Bench

LATENCIES = {
    "SCRATCHPAD_READ": ports.READ_LATENCY,
    "WEIGHT_READ": ports.WEIGHT_LATENCY,
    "HALT": HALT_LATENCY,
    "AFFINE": AffineLane.LATENCY,
    "PIXEL_FETCH": PixelFetcher.LATENCY,
    "PRODUCT": LutProduct.LATENCY,
    "ACCUMULATOR_WRITE": Accumulators.WRITE_LATENCY,
    "ACCUMULATOR_READ": Accumulators.READOUT_LATENCY,
    "REQUANTIZE": RequantizerLane.LATENCY,
    "TABLE_LOOKUP": TableLookup.LATENCY,
    "EPILOGUE": Epilogue.LATENCY,
    "SLIDING_TAPS": SLIDE_TAPS,
}


@pytest.mark.parametrize("name", LATENCIES)
def test_a_component_has_the_latency_of_the_specification(name: str) -> None:
    assert LATENCIES[name] == getattr(timing, name)


def test_the_array_has_one_stage_a_level_of_its_adder_tree() -> None:
    assert [MacArray.latency(rows) for rows in (4, 8, 16, 32)] == [timing.array_latency(r) for r in (4, 8, 16, 32)]


def test_a_residual_passes_one_affine_lane() -> None:
    assert Epilogue.RESIDUAL_LATENCY - Epilogue.LATENCY == ResidualAdder.LATENCY == timing.AFFINE < timing.RESIDUAL


def test_end_to_end_latencies_contain_their_pipelines() -> None:
    """The remainder, a few registers, FIFOs and the write, is positive."""
    assert timing.VECTOR_END > OperandFetcher.LATENCY + Slicer.LATENCY + Pool.LATENCY + Datapath.LATENCY
    depthwise = DepthwiseColumns.LATENCY + DepthwiseEpilogue.LATENCY + Datapath.BYTES_LATENCY
    assert depthwise < timing.DEPTHWISE_END
    assert depthwise + OperandFetcher.LATENCY < timing.DEPTHWISE_START + timing.DEPTHWISE_END
    assert PixelFetcher.LATENCY + MacArray.latency(16) + Epilogue.LATENCY < timing.MAC_END


@pytest.mark.parametrize("kernel_h", [1, 2, 3, 5])
@pytest.mark.parametrize(("stride", "out_h", "out_w"), [(1, 1, 1), (1, 3, 5), (2, 2, 3)])
def test_the_forecast_of_a_depthwise_convolution_is_exact(
    kernel_h: int, stride: int, out_h: int, out_w: int, rng: random.Random
) -> None:
    """While all ports grant."""
    params = preset("nano").replace(scratch_kib=4, vector_depthwise=True)
    shape = {
        "kernel_h": kernel_h,
        "kernel_w": 3,
        "out_h": out_h,
        "out_w": out_w,
        "stride_h": stride,
        "stride_w": stride,
    }
    addresses = {"a_row": 20, "in_h": 20, "in_w": 20, "b_base": 600, "out_base": 700, "out_row": 20}
    instruction = make(Kind.VDEPTHWISE, **shape, **addresses)
    outcome = Bench(params, [bytes(4)] * params.scratch_words, rng).run([instruction])
    cost = instruction_cost(instruction, params)
    # The unit takes an instruction a cycle before its start in the forecast.
    assert outcome.done[0] - outcome.started[0] == cost.work + cost.tail + 1


def _kinds(*patterns: AccessPattern) -> list[Kind]:
    return [kind for kind in Kind if BY_KIND[kind].pattern in patterns]


def _check_forecast(instruction: Instruction, params: HardwareParams, rng: random.Random) -> None:
    outcome = Bench(params, [bytes(params.rows)] * params.scratch_words, rng).run([instruction], settle=1)
    cost = instruction_cost(instruction, params)
    # The unit takes an instruction a cycle before its start in the forecast, and sets up in that cycle.
    assert outcome.done[0] - outcome.started[0] == cost.work + cost.tail + 2


@pytest.mark.parametrize("kind", _kinds(AccessPattern.COPY, AccessPattern.ELEMENTWISE, AccessPattern.WINDOW))
def test_the_forecast_of_any_copy_sum_product_or_window_is_exact(kind: Kind, rng: random.Random) -> None:
    """While all ports grant."""
    params = preset("nano")
    for _ in range(3):
        _check_forecast(BenchInstructions(rng, params).instruction(kind), params, rng)


@pytest.mark.parametrize("kind", _kinds(AccessPattern.WINDOW))
def test_the_forecast_of_windows_along_one_axis_is_exact(kind: Kind, rng: random.Random) -> None:
    """Some of these maxima slide, others read each word again."""
    params = preset("nano")
    for taps, stride, vertical in product((2, timing.SLIDING_TAPS, timing.SLIDING_TAPS + 1), (1, 2), (False, True)):
        along, across = ("h", "w") if vertical else ("w", "h")
        shape = {f"kernel_{along}": taps, f"stride_{along}": stride, f"kernel_{across}": 1, "out_h": 2, "out_w": 3}
        _check_forecast(make(kind, **shape, in_h=20, in_w=20, a_row=20, out_base=600, out_row=3), params, rng)
