"""Execution of the regions of a model in order, with host parts between them."""

from collections.abc import Callable, Mapping

from intloom.arrays import Array
from intloom.compiler.frontend import FoldedModel
from intloom.flow.host import HostParts, Int8, Int8s
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph

Runner = Callable[[int, Mapping[str, Int8]], Mapping[str, Int8]]
"""Runs a region, given by its number, on its inputs."""


def run_regions(
    folded: FoldedModel, host: HostParts, feeds: Mapping[str, Array], run: Runner
) -> tuple[Int8s, dict[str, Int8]]:
    """Run all regions; return all inputs of the integer graph, computed by the host, and the outputs of all regions."""
    inputs: Int8s = {}
    made: dict[str, Int8] = {}
    for index, region in enumerate(folded.regions):
        inputs |= host.before(feeds, index, made)
        known = {**inputs, **made}
        made |= run(index, {name: known[name] for name in region.inputs})
    return inputs, made


def all_inputs(folded: FoldedModel, host: HostParts, feeds: Mapping[str, Array], match: RoundingMode) -> Int8s:
    """All inputs of the integer graph; the golden model computes results that host parts need."""
    if len(folded.regions) == 1:
        return host.before(feeds)
    return run_regions(
        folded, host, feeds, lambda index, values: run_graph(folded.regions[index], values, match=match)
    )[0]
