"""The whole accelerator on Verilator with cocotb's independent bus models."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.spec.params import HardwareParams, preset

from .simulate import run_cocotb

ODD = HardwareParams(
    rows=8, cols=4, lanes=1, strip=16, scratch_kib=32, scratch_banks=2, weight_kib=4, axi_data_bits=64,
    axi_addr_bits=36, axi_burst=4, axi_outstanding=2, queue_depth=2, trace=False,
)  # fmt: skip
"""Unequal sides, one requantiser, a tiny weight memory, short bursts and queues."""
SHAPES = {"nano": preset("nano"), "odd": ODD, "base": preset("base")}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_programs_of_moves_match_the_model_under_stalls(shape: str, tmp_path: Path, seed: int) -> None:
    run_cocotb(SHAPES[shape], "tests.hw.npu.bench_moves", tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["nano", "odd"])
def test_every_fault_is_reported_and_survived(shape: str, tmp_path: Path, seed: int) -> None:
    run_cocotb(SHAPES[shape], "tests.hw.npu.bench_faults", tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["nano", "odd"])
def test_every_instruction_equals_the_instruction_simulator(shape: str, tmp_path: Path, seed: int) -> None:
    run_cocotb(SHAPES[shape], "tests.hw.npu.bench_units", tmp_path, seed)
