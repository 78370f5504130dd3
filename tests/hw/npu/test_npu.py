"""The whole accelerator on Verilator with cocotb's independent bus models."""

from pathlib import Path

import pytest

from intloom.hw.spec.params import PRESETS, HardwareParams
from tests.hw.npu.simulate import run_cocotb
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES as SMALL_SHAPES

ODD = HardwareParams(
    rows=8, cols=4, lanes=1, strip=16, scratch_kib=32, scratch_banks=2, weight_kib=4, axi_data_bits=32,
    axi_addr_bits=36, axi_burst=8, axi_outstanding=2, queue_depth=2, trace=False, clock_gating=False,
    axi_prot=5, axi_cache=15, axi_qos=9, axi_user_bits=7, axi_user=0x55,
)  # fmt: skip
"""Unequal sides, one requantizer, a tiny weight memory, short bursts and queues, a narrow port, clocks that always run.

The attributes of the bus are not the default ones.
"""
SHORT = PRESETS["large"].replace(
    rows=4, cols=4, lanes=4, strip=16, scratch_kib=32, weight_kib=16, axi_data_bits=128, vector_lanes=4
)  # fmt: skip
"""As `large`, a requantizer for each column and whole words in the vector unit, with short words on a wide port."""
SHAPES = {**PRESETS, "odd": ODD, "short": SHORT, "whole": SMALL_SHAPES["whole"]}
DAILY = "whole"
"""Random programs of every instruction, coincidences, starts and gated clocks have other shapes, too."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", with_nightly(SHAPES, SHAPES.keys() - {DAILY}))
def test_every_fault_is_survived(shape: str, tmp_path: Path, seed: int) -> None:
    run_cocotb(SHAPES[shape], "tests.hw.npu.bench_faults", tmp_path, seed)
