"""Cocotb tests: every instruction through the whole accelerator, against the instruction simulator, under stalls."""

from typing import Any

import cocotb

from intloom.hw.spec import regs
from intloom.hw.spec.isa import Kind, make
from tests.hw.npu.host import Host
from tests.hw.npu.work import compare, vector_kinds


@cocotb.test()
async def empty_program(dut: Any) -> None:
    """BEGIN and END alone end well, twice."""
    host = await Host(dut, "empty").begin()
    for _ in range(2):
        status = await host.run([host.begin_instruction(), make(Kind.END)])
        assert status == regs.unpack("STATUS", regs.pack("STATUS", done=1))


@cocotb.test()
async def moves(dut: Any) -> None:
    """Loads and stores, on a memory that never refuses, and on one that refuses on every channel."""
    host = await Host(dut, "moves").begin()
    for stalls in (0.0, 0.5):
        await compare(host, stalls, 0, (Kind.LOAD, Kind.STORE) * 6)


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
    """Convolutions, then every vector instruction and moves."""
    host = await Host(dut, "programs").begin()
    kinds = vector_kinds(host.params)
    await compare(host, 0.3, 4, (*kinds, Kind.LOAD, Kind.STORE, *kinds))
