"""Pairs of pixels: names and bytes of the graph's tensors."""

import numpy as np

from intloom.compiler.program.memory import paired_name, without_pairs


def test_pixels_of_a_pair_are_neighbors_again() -> None:
    image = np.random.default_rng(0).integers(-128, 128, (1, 3, 5, 8)).astype(np.int8)
    pairs = np.concatenate([image[..., 0::2], image[..., 1::2]], axis=1)
    found = without_pairs({paired_name("x"): pairs, "y": pairs})
    assert set(found) == {"x", "y"}
    np.testing.assert_array_equal(found["x"], image)
    np.testing.assert_array_equal(found["y"], pairs)
