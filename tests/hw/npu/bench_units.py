"""Cocotb tests: every instruction through the whole accelerator, against the instruction simulator, under stalls."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from hw.spec import isa, regs
from hw.spec.isa import Instruction, Kind, TableUse, Target, Unit
from sim.isa_sim.machine import blank_machine
from sim.isa_sim.simulator import semantics
from tests.hw.mac.cases import SCRATCH_WORDS, random_case
from tests.hw.npu.host import Host
from tests.hw.vector.cases import Maker

IMAGE_WORD = 0x800
"""Where the scratchpad's content starts in memory; that of the weight memory and the results follow."""
VECTOR_KINDS = (Kind.VCOPY, Kind.VADD, Kind.VMUL, Kind.VMAX, Kind.VAVG)


def _after(instruction: Instruction, done: dict[Unit, int]) -> Instruction:
    """The instruction, waiting for all that came before on other units; its own unit keeps the order by itself."""
    others = {u: n for u, n in done.items() if u is not instruction.unit}
    done[instruction.unit] += 1
    return instruction.with_fields(**{f"wait_{u.name.lower()}": n for u, n in others.items()})


def _with_loaded_tables(program: list[Instruction]) -> list[Instruction]:
    """The program without uses of a table that nothing has loaded."""
    loads = [k for k, i in enumerate(program) if i["table"] == TableUse.LOAD]
    first = loads[0] if loads else len(program)
    return [i.with_fields(table=TableUse.NONE) if k < first else i for k, i in enumerate(program)]


def _program(host: Host, work: list[Instruction]) -> list[Instruction]:
    """Fill both memories, do the work, store the scratchpad as far as it is used."""
    p = host.params
    weights_at, results_at = IMAGE_WORD + SCRATCH_WORDS, IMAGE_WORD + SCRATCH_WORDS + p.weight_words
    fill = [
        isa.make("LOAD", dram=IMAGE_WORD, n0=SCRATCH_WORDS),
        isa.make("LOAD", dram=weights_at, n0=p.weight_words, target=Target.WEIGHT),
    ]
    store = isa.make("STORE", dram=results_at, n0=SCRATCH_WORDS)
    done = dict.fromkeys(isa.QUEUED_UNITS, 0)
    body = [_after(instruction, done) for instruction in (*fill, *work, store)]
    return [host.begin_instruction(), *body, _after(isa.make("END"), {**done, Unit.CONTROL: 0})]


async def _compare(host: Host, stalls: float, mac: int, vectors: tuple[Kind, ...]) -> None:
    host.set_stalls(stalls)
    p = host.params
    case = random_case(host.rng.getrandbits(32), p, mac)
    convolutions = _with_loaded_tables(case.program)
    maker = Maker(host.rng, p.replace(scratch_kib=SCRATCH_WORDS * host.word // 1024))
    work = [*convolutions, *(maker.instruction(kind) for kind in vectors)]
    program = _program(host, work)
    image = bytearray(host.rng.randbytes(host.memory_bytes))
    at = IMAGE_WORD * host.word
    image[at : at + SCRATCH_WORDS * host.word] = case.scratch.tobytes()
    at += SCRATCH_WORDS * host.word
    image[at : at + case.weights.size] = case.weights.tobytes()
    host.ram.write(0, bytes(image))
    host.put(program)
    before = host.ram.read(0, host.memory_bytes)
    status = await host.run(program)
    assert status == regs.unpack("STATUS", regs.pack("STATUS", done=1))
    machine = blank_machine(p, np.frombuffer(before, np.uint8).copy())
    for instruction in program:
        semantics(instruction.kind)(machine, instruction)
    found = np.frombuffer(host.ram.read(0, host.memory_bytes), np.uint8)
    expected = np.frombuffer(machine.dram.tobytes(), np.uint8)
    different = np.flatnonzero(found != expected)
    lines = "\n".join(isa.disassemble(i) for i in work)
    first = int(different[0]) // host.word if different.size else 0
    assert not different.size, f"{different.size} bytes differ, the first in word {first:#x}, after\n{lines}"
    assert await host.read("MAC_DONE") == len(convolutions)
    assert await host.read("VEC_DONE") == len(vectors)


@cocotb.test()
async def single_convolutions(dut: Any) -> None:
    """One CONV at a time."""
    host = await Host(dut, "convolutions").begin()
    for stalls in (0.0, 0.3):
        await _compare(host, stalls, 1, ())


@cocotb.test()
async def vector_instructions(dut: Any) -> None:
    """A table and a few vector instructions."""
    host = await Host(dut, "vector").begin()
    for kinds in (VECTOR_KINDS[:2], VECTOR_KINDS[2:]):
        await _compare(host, 0.1, 0, (Kind.VTABLE, *kinds))


@cocotb.test()
async def small_programs(dut: Any) -> None:
    """Convolutions and then every vector instruction."""
    host = await Host(dut, "programs").begin()
    await _compare(host, 0.3, 4, (Kind.VTABLE, *VECTOR_KINDS, *VECTOR_KINDS))
