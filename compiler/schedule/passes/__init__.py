"""Passes: rewrites of the integer graph that let the array compute a node, or save cycles; results stay the same."""

from intloom.compiler.ir import IntGraph
from intloom.compiler.schedule.passes.blank_lanes import fill_blank_lanes
from intloom.compiler.schedule.passes.pixel_pairs import pair_pixels
from intloom.compiler.schedule.passes.selected_pixels import read_images
from intloom.hw.spec.params import HardwareParams


def rewrite(graph: IntGraph, params: HardwareParams, keep_intermediates: bool) -> IntGraph:
    """The graph that is scheduled; with `keep_intermediates`, every tensor of the given graph is in it."""
    rewritten = graph if keep_intermediates else pair_pixels(read_images(graph, params), params)
    # Last, because a convolution that a pass before it replaces may have filled lanes.
    return fill_blank_lanes(rewritten, params)
