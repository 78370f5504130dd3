"""Cocotb tests: every fault is reported with its cause, unit and instruction, and survived."""

from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

from intloom.hw.spec import isa, regs
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.regs import Cause
from intloom.sim.host.run_program import read_status
from tests.hw.npu.host import PROGRAM_WORD, Host

SOURCE_WORD = 0x200
TARGET_WORD = 0x400
WORDS = 24


def _load(**fields: int) -> isa.Instruction:
    return isa.make("LOAD", **{"dram": SOURCE_WORD, "local": 3, "n0": WORDS, **fields})


def _store(**fields: int) -> isa.Instruction:
    return isa.make("STORE", **{"dram": TARGET_WORD, "local": 3, "n0": WORDS, **fields})


async def _good_program_runs(host: Host) -> None:
    data = host.rng.randbytes(WORDS * host.word)
    host.ram.write(SOURCE_WORD * host.word, data)
    host.ram.write(TARGET_WORD * host.word, bytes(len(data)))
    status = await host.run([host.begin_instruction(), _load(), _store(wait_load=1), isa.make("END")])
    assert status == regs.unpack("STATUS", regs.pack("STATUS", done=1))
    assert host.ram.read(TARGET_WORD * host.word, len(data)) == data
    assert await host.read("LOAD_DONE") == await host.read("STORE_DONE") == 1


async def _fault(
    host: Host, program: Sequence[isa.Instruction | bytes], cause: Cause, unit: Unit, index: int, **options: int
) -> None:
    status = await host.run(program, **options)
    assert (status["error"], status["done"]) == (1, 0), status
    assert (Cause(status["cause"]), Unit(status["unit"])) == (cause, unit)
    assert await host.read("ERROR_INDEX") == index
    assert await host.read("IRQ_STATUS") == regs.pack("IRQ_STATUS", error=1)
    await host.rest()
    await host.write("CONTROL", regs.pack("CONTROL", start=1))
    status = regs.unpack("STATUS", await host.read("STATUS"))
    assert status["error"] == 1, "start must be ignored in error"
    host.ram.poison.set(0, 0, AxiResp.OKAY)
    await host.reset()
    assert regs.unpack("STATUS", await host.read("STATUS")) == regs.unpack("STATUS", 0)
    await _good_program_runs(host)


def _raw(instruction: isa.Instruction, **bits: int) -> bytes:
    """An encoded instruction with fields set to values that the encoder refuses."""
    word = int.from_bytes(isa.encode(instruction), "little")
    for name, value in bits.items():
        if name == "past_end":
            at, width = sum(f.width for f in instruction.spec.fields), 1
        else:
            at, width = instruction.spec.offsets[name], instruction.spec.field(name).width
        word = (word & ~(((1 << width) - 1) << at)) | value << at
    return word.to_bytes(isa.INSTRUCTION_BYTES, "little")


@cocotb.test()
async def control_faults(dut: Any) -> None:
    """Everything that dispatch itself refuses."""
    host = await Host(dut, "control").begin(0.2)
    begin, end = host.begin_instruction(), isa.make("END")
    long = _load(n1=40, dram_s1=WORDS)
    await _fault(host, [begin, long, _raw(_load(), opcode=0x7F), end], Cause.BAD_OPCODE, Unit.CONTROL, 2)
    await _fault(host, [begin, _load(), _raw(_store(), n1=0), end], Cause.BAD_FIELD, Unit.STORE, 2)
    await _fault(host, [begin, _raw(isa.make("CONV"), stride_h=7), end], Cause.BAD_FIELD, Unit.MAC, 1)
    await _fault(host, [begin, _raw(isa.make("VTABLE"), past_end=1), end], Cause.BAD_FIELD, Unit.VEC, 1)
    other = begin.with_fields(fingerprint=host.params.fingerprint() ^ 1)
    await _fault(host, [other, end], Cause.WRONG_PROGRAM, Unit.CONTROL, 0)
    await _fault(host, [begin.with_fields(version=isa.ISA_VERSION + 1), end], Cause.WRONG_PROGRAM, Unit.CONTROL, 0)
    await _fault(host, [_load(), end], Cause.WRONG_PROGRAM, Unit.CONTROL, 0)
    await _fault(host, [begin, _load()], Cause.NO_END, Unit.CONTROL, 2)
    await _fault(host, [], Cause.NO_END, Unit.CONTROL, 0)


@cocotb.test()
async def unit_faults(dut: Any) -> None:
    """Addresses outside the scratchpad, and errors of the bus."""
    host = await Host(dut, "units").begin(0.3)
    begin, end = host.begin_instruction(), isa.make("END")
    edge = host.params.scratch_words - WORDS + 1
    await _fault(host, [begin, _load(), _load(local=edge), end], Cause.SCRATCH_RANGE, Unit.LOAD, 2)
    await _fault(host, [begin, _load(), _store(local=edge, wait_load=1), end], Cause.SCRATCH_RANGE, Unit.STORE, 2)
    reads = {AxiResp.SLVERR: Cause.READ_SLVERR, AxiResp.DECERR: Cause.READ_DECERR}
    for response, cause in reads.items():
        host.ram.poison.set((SOURCE_WORD + 20) * host.word, (SOURCE_WORD + 21) * host.word, response)
        await _fault(host, [begin, _load(n0=4), _load(), _load(n1=9), end], cause, Unit.LOAD, 2)
    writes = {AxiResp.SLVERR: Cause.WRITE_SLVERR, AxiResp.DECERR: Cause.WRITE_DECERR}
    for response, cause in writes.items():
        host.ram.poison.set((TARGET_WORD + 9) * host.word, (TARGET_WORD + 10) * host.word, response)
        await _fault(host, [begin, _load(), _store(wait_load=1), _store(n1=9, wait_load=1), end], cause, Unit.STORE, 2)
    program = [begin, _load(), _load(), end]
    # A beat of a wide port holds words of more than one instruction: this one begins in or behind instruction 2.
    first, port = PROGRAM_WORD * host.word, host.params.port_bytes
    low = -(-(first + 2 * isa.INSTRUCTION_BYTES) // port) * port
    for response in reads:
        host.ram.poison.set(low, low + 1, response)
        await _fault(host, program, Cause.FETCH_ERROR, Unit.CONTROL, (low - first) // isa.INSTRUCTION_BYTES)


@cocotb.test()
async def window_faults(dut: Any) -> None:
    """No load, store or fetch gets outside the window, at either end; `Host` checks each address on the bus."""
    host = await Host(dut, "window").begin(0.2)
    begin, end, limit = host.begin_instruction(), isa.make("END"), TARGET_WORD + WORDS
    over, under = limit - WORDS + 1, (1 << isa.DRAM_BITS) - WORDS
    for dram in (over, limit, host.rng.randrange(limit, 1 << 28), under, under + 1):
        # The last one in the window, then the first one outside; words that belong to others stay.
        memory = host.ram.read(0, host.memory_bytes)
        load = _load(dram=limit - WORDS)
        await _fault(host, [begin, load, _load(dram=dram), end], Cause.OUTSIDE_WINDOW, Unit.LOAD, 2, limit=limit)
        host.ram.write(0, memory)
        program = [begin, _load(), _store(wait_load=1), _store(dram=dram, wait_load=1), end]
        status = await host.run(program, limit=limit)
        assert (Cause(status["cause"]), Unit(status["unit"])) == (Cause.OUTSIDE_WINDOW, Unit.STORE)
        assert await host.read("ERROR_INDEX") == 3
        await host.rest()
        await host.reset()
        assert host.ram.read(limit * host.word, 64) == memory[limit * host.word :][:64]
    # Rows and planes that step outside.
    for fields in ({"n1": 3, "dram_s1": 1 << 20}, {"n2": 2, "dram_s2": (1 << isa.DRAM_BITS) - 2 * SOURCE_WORD}):
        program = [begin, _load(), _load(**fields), end]
        await _fault(host, program, Cause.OUTSIDE_WINDOW, Unit.LOAD, 2, limit=limit)
    words = PROGRAM_WORD + 4 * isa.INSTRUCTION_BYTES // host.word
    program = [begin, _load(n0=1, dram=0), _load(n0=1, dram=0), end]
    assert (await host.run(program, limit=words))["done"]
    for short in (words - 1, PROGRAM_WORD, 0):
        await _fault(host, program, Cause.OUTSIDE_WINDOW, Unit.CONTROL, 0, limit=short)


@cocotb.test()
async def window_is_latched_and_locked(dut: Any) -> None:
    """Settings that change while a program runs do not reach it; a locked window stays until the reset."""
    host = await Host(dut, "latched").begin(0.2)
    names = ("BASE_LOW", "BASE_HIGH", "LIMIT", "PROGRAM", "LENGTH")
    data = host.rng.randbytes(WORDS * host.word)
    host.ram.write(SOURCE_WORD * host.word, data)
    program = [host.begin_instruction(), _load(n1=20), _store(wait_load=1), isa.make("END")]
    for name in names:
        host.ram.write(TARGET_WORD * host.word, bytes(len(data)))
        await host.start(program)
        # Directly after START: the next transfer of the bus.
        await host.write(name, host.rng.getrandbits(32))
        assert (await host.finish())["done"], name
        assert host.ram.read(TARGET_WORD * host.word, len(data)) == data
    await host.start(program, limit=TARGET_WORD)
    await host.write("LIMIT", 1 << 31)
    assert Cause((await host.finish())["cause"]) is Cause.OUTSIDE_WINDOW, "a larger limit must not help"
    await host.rest()
    await host.reset()
    await host.write("LOCK", 1)
    before = {name: await host.read(name) for name in names}
    for name in names:
        await host.write(name, before[name] ^ 0xFF00)
        assert (await host.read(name) == before[name]) == (name not in ("PROGRAM", "LENGTH"))
    await host.write("LOCK", 0)
    await host.reset()
    assert await host.read("LOCK") == 1, "neither software nor the soft reset may unlock"
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 2)
    assert await host.read("LOCK") == await host.read("LIMIT") == 0
    await _good_program_runs(host)


@cocotb.test()
async def masked_store_after_an_address_fault(dut: Any) -> None:
    """Words that could not be read do not reach memory."""
    host = await Host(dut, "masked").begin()
    old = host.rng.randbytes(WORDS * host.word)
    host.ram.write(TARGET_WORD * host.word, old)
    local = host.params.scratch_words - 4
    program = [host.begin_instruction(), _load(local=local, n0=4), _store(local=local, wait_load=1), isa.make("END")]
    await _fault_only(host, program)
    assert host.ram.read((TARGET_WORD + 4) * host.word, len(old) - 4 * host.word) == old[4 * host.word :]


async def _fault_only(host: Host, program: Sequence[isa.Instruction]) -> None:
    status = await host.run(program)
    assert Cause(status["cause"]) is Cause.SCRATCH_RANGE
    await host.rest()


@cocotb.test()
async def watchdog(dut: Any) -> None:
    """A wait for something that never comes, and a memory that never answers."""
    host = await Host(dut, "watchdog").begin()
    begin, end = host.begin_instruction(), isa.make("END")
    deadlock = [begin, _load(), _load(wait_store=1), _store(wait_load=2), end]
    await _fault(host, deadlock, Cause.WATCHDOG, Unit.LOAD, 2, watchdog=300)
    await _fault(host, [begin, end.with_fields(wait_vec=1)], Cause.WATCHDOG, Unit.CONTROL, 1, watchdog=300)
    host.ram.write_if.b_channel.pause = True
    stores = 0

    async def count() -> None:
        nonlocal stores
        while True:
            await RisingEdge(dut.clk)
            stores += int(dut.trace_started.value) >> Unit.STORE & 1

    counting = cocotb.start_soon(count()) if hasattr(dut, "trace_started") else None
    status = await host.run([begin, _load(), *[_store(wait_load=1)] * 40, end], watchdog=300)
    assert (Cause(status["cause"]), Unit(status["unit"]), status["busy"]) == (Cause.WATCHDOG, Unit.STORE, 1)
    if counting is not None:
        counting.cancel()
        # BEGIN and the LOAD are instructions 0 and 1. The next store is offered, but the unit does not take it.
        assert 1 < stores < 40
        assert await host.read("ERROR_INDEX") == 1 + stores
    await host.write("CONTROL", regs.pack("CONTROL", reset=1))
    assert regs.unpack("STATUS", await host.read("STATUS"))["busy"], "the reset must wait for the bus"
    host.ram.write_if.b_channel.pause = False
    await host.reset()
    await _good_program_runs(host)


async def _hang(host: Host, watchdog: int = 300) -> dict[str, int]:
    """A program on a bus that stops answering, then the reset command; what is outstanding."""
    program = [host.begin_instruction(), _store(), *[_load(n1=12, dram_s1=WORDS, local_s1=1)] * 3, isa.make("END")]
    await host.start(program, watchdog=watchdog)
    read, write = host.ram.read_if, host.ram.write_if
    for channel in (read.ar_channel, write.aw_channel, write.w_channel):
        # The slave still takes what is offered.
        channel.queue_occupancy_limit = -1
    while await host.read("LOAD_DONE") == 0:
        await ClockCycles(host.dut.clk, 1)
    read.r_channel.pause = write.b_channel.pause = True
    status = await host.finish()
    assert (Cause(status["cause"]), status["busy"]) == (Cause.WATCHDOG, 1)
    await host.write("CONTROL", regs.pack("CONTROL", reset=1))
    await ClockCycles(host.dut.clk, 200)
    assert (await read_status(host))["busy"], "the reset waits for the bus"
    left = regs.unpack("OUTSTANDING", await host.read("OUTSTANDING"))
    assert left["reads"] + left["writes"] > 0
    assert left["offered"] == 0, "all offers have been taken"
    await ClockCycles(host.dut.clk, 200)
    assert left == regs.unpack("OUTSTANDING", await host.read("OUTSTANDING")), "nothing new is issued"
    return left


async def _rest_after_hang(host: Host) -> None:
    """Nothing is outstanding, and programs run."""
    await host.rest()
    assert await host.read("OUTSTANDING") == 0
    await _good_program_runs(host)


@cocotb.test()
async def a_bus_that_answers_late(dut: Any) -> None:
    """The reset command ends with the last answer."""
    host = await Host(dut, "late").begin()
    await _hang(host)
    host.ram.read_if.r_channel.pause = host.ram.write_if.b_channel.pause = False
    await _rest_after_hang(host)


@cocotb.test()
async def a_bus_that_never_answers(dut: Any) -> None:
    """Accelerator and bus are reset together; the slave forgets what it owes."""
    host = await Host(dut, "never").begin()
    await _hang(host)
    await host.reset_input()
    host.ram.read_if.r_channel.pause = host.ram.write_if.b_channel.pause = False
    await _rest_after_hang(host)


@cocotb.test()
async def a_bus_that_answers_after_the_reset(dut: Any) -> None:
    """The accelerator alone is reset, behind an isolator that drops as many answers as OUTSTANDING has counted."""
    host = await Host(dut, "after").begin(slave_reset=False)
    left = await _hang(host)
    dropped = host.isolate(left["reads"], left["writes"])
    await host.reset_input()
    host.ram.read_if.r_channel.pause = host.ram.write_if.b_channel.pause = False
    await ClockCycles(dut.clk, 2000)
    assert dropped() == (left["reads"], left["writes"])
    await _rest_after_hang(host)


@cocotb.test()
async def reset_at_any_moment(dut: Any) -> None:
    """A soft reset in the midst of a program leaves a legal bus and a working accelerator."""
    host = await Host(dut, "reset").begin(0.3)
    long = [_load(n1=12, dram_s1=WORDS, local_s1=1), _store(n1=12, dram_s1=WORDS, local_s1=1)]
    program = [host.begin_instruction(), *long * 4, isa.make("END")]
    for _ in range(8):
        await host.start(program)
        await ClockCycles(dut.clk, host.rng.randrange(1, 900))
        await host.reset()
        await host.rest()
        host.ram.write(0, bytes(host.memory_bytes))
        await _good_program_runs(host)
