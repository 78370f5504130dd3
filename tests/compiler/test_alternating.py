"""Operators of the host between regions: every value that crosses between them equals onnxruntime's."""

import pytest

from intloom.flow.checking import reference_model
from tests.support.alternating_model import alternating_model
from tests.support.parity import assert_equal


def check(seed: int) -> None:
    model = alternating_model(seed)
    folded = assert_equal(model, seed).folded
    assert len(folded.regions) > 1
    crossing = {name for region in folded.regions for name in (*region.inputs, *region.outputs)}
    in_file = crossing & {name for node in model.graph.node for name in node.output}
    assert len(in_file) >= len(folded.regions)
    # The comparison covers every value of the reference.
    reference, _ = reference_model(folded, model)
    assert in_file <= {name for node in reference.graph.node for name in node.output}


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.nightly)])
def test_models_of_several_regions(count: int, seed: int) -> None:
    for number in range(seed, seed + count):
        check(number)
