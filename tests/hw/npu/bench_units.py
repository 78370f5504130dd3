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
async def single_convolution(dut: Any) -> None:
    """One CONV, on a memory that never refuses."""
    host = await Host(dut, "convolutions").begin()
    await compare(host, 0.0, 1, ())


@cocotb.test()
async def small_programs(dut: Any) -> None:
    """Convolutions, then every vector instruction and moves."""
    host = await Host(dut, "programs").begin()
    kinds = vector_kinds(host.params)
    await compare(host, 0.3, 4, (*kinds, Kind.LOAD, Kind.STORE, *kinds))
