"""Small hardware that together has every structural branch of the RTL; tests/hw/test_shapes.py derives the branches."""

from intloom.hw.spec.params import HardwareParams, preset

_NANO = preset("nano").replace(axi_burst=4, axi_outstanding=4, queue_depth=2)
"""Short bursts and queues: many of them begin and end in a short program."""
SHAPES: dict[str, HardwareParams] = {
    "nano": _NANO.replace(vector_depthwise=True),
    "whole": _NANO.replace(
        lanes=4, strip=32, axi_outstanding=1, vector_lanes=4, vector_softmax=True,
        vector_depthwise=True, vector_norm=True, word_code=True, constant_check=True, axi_addr_bits=40,
    ),
    "halves": preset("small").replace(
        lanes=2, vector_lanes=4, scratch_kib=32, vector_softmax=True, vector_depthwise=True, vector_norm=True,
        memory_parity=True, match="exact", mantissa_bits=15, acc_bits=20, axi_data_bits=32,
    ),
    "bytes": _NANO.replace(
        cols=8, lut_products=0, multiplier_bits=25, memory_parity=True, vector_multiply=False, vector_average=False,
        clock_gating=False, trace=False, axi_user_bits=3, axi_user=5, register_errors=False,
        axi_data_bits=128,
    ),
}  # fmt: skip
"""Slices of a quarter, of the whole and of half a word; a vector unit without options that shares a data path. The port
is as wide as a word, narrower or wider."""
