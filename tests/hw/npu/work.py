"""Random programs of all instructions, compared with the instruction simulator."""

from dataclasses import dataclass

import numpy as np

from intloom.hw.spec import isa, regs
from intloom.hw.spec.isa import Instruction, Kind, LoadTarget, Unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.hw.vector.operation import kinds_of
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from tests.hw.instructions import BenchInstructions
from tests.hw.mac.cases import SCRATCH_WORDS, random_case
from tests.hw.npu.host import MEMORY_WORDS, Host

IMAGE_WORD = 0x800
"""Where the scratchpad's content starts in memory; that of the weight memory and the results follow."""
_MOVED = (MEMORY_WORDS * 3 // 4, MEMORY_WORDS // 4)
"""First word and number of words in memory that random loads and stores use."""


_MOVES = (Unit.LOAD, Unit.STORE)


def vector_kinds(params: HardwareParams) -> tuple[Kind, ...]:
    """Instructions of the vector unit that this hardware has: first those that load exponentials."""
    return (*(Kind.VEXP,) * EXPONENTIAL_BYTES * params.vector_softmax, *kinds_of(params))


def _after(instruction: Instruction, done: dict[Unit, int]) -> Instruction:
    """The instruction, waiting for all that came before; the MAC and the vector unit keep the order by themselves."""
    ordered = instruction.unit in (Unit.MAC, Unit.VEC)
    waits = {f"wait_{u.name.lower()}": n for u, n in done.items() if u is not instruction.unit or not ordered}
    if instruction.unit in done:
        done[instruction.unit] += 1
    return instruction.with_fields(**waits)


def fill(host: Host) -> list[Instruction]:
    """Loads that fill both memories from the image."""
    weights_at, words = IMAGE_WORD + SCRATCH_WORDS, host.params.weight_words
    return [
        isa.make("LOAD", dram=IMAGE_WORD, n0=SCRATCH_WORDS),
        isa.make("LOAD", dram=weights_at, n0=words, target=LoadTarget.WEIGHT),
    ]


def drain(host: Host) -> Instruction:
    """The store of the scratchpad, as far as it is used, behind the image."""
    return isa.make("STORE", dram=IMAGE_WORD + SCRATCH_WORDS + host.params.weight_words, n0=SCRATCH_WORDS)


def _program(host: Host, work: list[Instruction]) -> list[Instruction]:
    """Fill both memories, do the work, store the results."""
    done = dict.fromkeys(isa.QUEUED_UNITS, 0)
    body = [_after(instruction, done) for instruction in (*fill(host), *work, drain(host))]
    return [host.begin_instruction(), *body, _after(isa.make("END"), done)]


@dataclass
class Work:
    """Random instructions, none waiting for another, and the memory that they need."""

    instructions: list[Instruction]
    image: bytes


def random_work(host: Host, mac: int, others: tuple[Kind, ...]) -> Work:
    """So many convolutions, and then instructions of these kinds."""
    p = host.params
    case = random_case(host.rng.getrandbits(32), p, mac)
    maker = BenchInstructions(
        host.rng, p.replace(scratch_kib=SCRATCH_WORDS * host.word // 1024), exponentials=False, islands=[_MOVED]
    )
    image = bytearray(host.rng.randbytes(host.memory_bytes))
    at = IMAGE_WORD * host.word
    image[at : at + SCRATCH_WORDS * host.word] = case.scratch.tobytes()
    at += SCRATCH_WORDS * host.word
    image[at : at + case.weights.size] = case.weights.tobytes()
    assert at + case.weights.size + SCRATCH_WORDS * host.word <= _MOVED[0] * host.word
    return Work([*case.program, *(maker.instruction(kind) for kind in others)], bytes(image))


async def compare(host: Host, stalls: float, mac: int, others: tuple[Kind, ...]) -> None:
    """Run a random program; memory must then be as the instruction simulator leaves it."""
    host.set_stalls(stalls)
    p, work = host.params, random_work(host, mac, others)
    program = _program(host, work.instructions)
    host.ram.write(0, work.image)
    host.put(program)
    before = host.ram.read(0, host.memory_bytes)
    status = await host.run(program)
    assert status == regs.unpack("STATUS", regs.pack("STATUS", done=1))
    machine = blank_machine(p, np.frombuffer(before, np.uint8).copy())
    for instruction in program:
        SEMANTICS[instruction.kind](machine, instruction)
    found = np.frombuffer(host.ram.read(0, host.memory_bytes), np.uint8)
    expected = np.frombuffer(machine.dram.tobytes(), np.uint8)
    different = np.flatnonzero(found != expected)
    lines = "\n".join(isa.disassemble(i) for i in work.instructions)
    first = int(different[0]) // host.word if different.size else 0
    assert not different.size, f"{different.size} bytes differ, the first in word {first:#x}, after\n{lines}"
    for unit in isa.QUEUED_UNITS:
        assert await host.read(f"{unit.name}_DONE") == sum(i.unit is unit for i in program)
    words = {unit: sum(i["n0"] * i["n1"] * i["n2"] for i in program if i.unit is unit) for unit in _MOVES}
    assert await host.read("STORE_BUSY") == words[Unit.STORE]
    assert await host.read("WRITE_BEATS") == words[Unit.STORE] * p.word_beats
    fetched = len(program) * isa.INSTRUCTION_BYTES // host.word
    assert await host.read("READ_BEATS") == (words[Unit.LOAD] + fetched) * p.word_beats
    assert await host.read("LOAD_BUSY") == words[Unit.LOAD]
