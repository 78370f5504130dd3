"""Hardware with fewer mantissa or accumulator bits: equal results, or an error that names the node."""

import dataclasses

import numpy as np
import pytest

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir import IntGraph
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.regress.graphs import GraphMaker
from tests.compiler.schedule.test_compile import assert_equal_to_golden, compiled


def graph_of(mantissa: int, weight: int | None = None, channels: int = 20) -> tuple[GraphMaker, IntGraph]:
    """A convolution, with this mantissa and weight everywhere."""
    maker = GraphMaker(3)
    graph = maker.graph(maker.conv(maker.input(channels, 5, 6), 12))
    (node,) = graph.nodes
    weights = node.weights if weight is None else np.full_like(node.weights, weight)
    # A right shift by 31 bits of a mantissa of 24 bits: results are spread over all bytes.
    node = dataclasses.replace(
        node, weights=weights, mantissa=np.full_like(node.mantissa, mantissa), shift=np.full_like(node.shift, 32)
    )
    return maker, dataclasses.replace(graph, nodes=(node,))


def exact(bits: int, **changes: int) -> HardwareParams:
    return preset("nano").replace(match=str(RoundingMode.EXACT), mantissa_bits=bits, **changes)


@pytest.mark.parametrize(
    ("mantissa", "bits"), [(0xFF << 16, 8), (0xFFFF << 8, 16), (1 << 23, 8), (0, 8), (0x7F << 3, 8)]
)
def test_low_zeros_of_a_mantissa_need_no_bits(mantissa: int, bits: int) -> None:
    maker, graph = graph_of(mantissa)
    assert_equal_to_golden(graph, maker, compiled(graph, exact(bits)))


@pytest.mark.parametrize(("mantissa", "bits"), [(0x1FF << 15, 8), (0x80_0001, 23), (0x1_0001 << 7, 16)])
def test_a_mantissa_with_more_bits_is_refused(mantissa: int, bits: int) -> None:
    _, graph = graph_of(mantissa)
    with pytest.raises(UnsupportedError, match=rf"more than the {bits} mantissa bits .* use mantissa_bits = 24"):
        compiled(graph, exact(bits))
    compiled(graph, exact(bits + 1))


def test_a_shift_below_the_mantissas_low_zeros_is_refused() -> None:
    _, graph = graph_of(1 << 23)
    (node,) = graph.nodes
    graph = dataclasses.replace(graph, nodes=(dataclasses.replace(node, shift=np.full_like(node.shift, 15)),))
    with pytest.raises(UnsupportedError, match="more than the 8 mantissa bits"):
        compiled(graph, exact(8))
    compiled(graph, exact(9))


@pytest.mark.parametrize(("weight", "channels", "bits"), [(-128, 31, 20), (127, 32, 20), (-128, 63, 21)])
def test_sums_fit_the_accumulators(weight: int, channels: int, bits: int) -> None:
    maker, graph = graph_of(1 << 23, weight, channels)
    assert_equal_to_golden(graph, maker, compiled(graph, preset("nano").replace(acc_bits=bits)))


@pytest.mark.parametrize(("weight", "channels", "bits"), [(-128, 32, 20), (127, 33, 20), (-128, 64, 21)])
def test_larger_sums_are_refused(weight: int, channels: int, bits: int) -> None:
    _, graph = graph_of(1 << 23, weight, channels)
    with pytest.raises(
        UnsupportedError, match=rf"may need {bits + 1} bits, and accumulators have {bits}; use acc_bits"
    ):
        compiled(graph, preset("nano").replace(acc_bits=bits))
    compiled(graph, preset("nano").replace(acc_bits=bits + 1))
