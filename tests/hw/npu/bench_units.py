"""Cocotb tests: every instruction through the whole accelerator, against the instruction simulator, under stalls."""

from typing import Any

import cocotb

from tests.hw.npu.host import Host
from tests.hw.npu.work import compare, vector_kinds


@cocotb.test()
async def single_convolutions(dut: Any) -> None:
    """One CONV at a time."""
    host = await Host(dut, "convolutions").begin()
    for stalls in (0.0, 0.3):
        await compare(host, stalls, 1, ())


@cocotb.test()
async def vector_instructions(dut: Any) -> None:
    """Every vector instruction."""
    host = await Host(dut, "vector").begin()
    await compare(host, 0.1, 0, vector_kinds(host.params))


@cocotb.test()
async def small_programs(dut: Any) -> None:
    """Convolutions and then every vector instruction."""
    host = await Host(dut, "programs").begin()
    kinds = vector_kinds(host.params)
    await compare(host, 0.3, 4, (*kinds, *kinds))
