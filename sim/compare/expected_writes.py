"""The reference model of the write log: what each instruction must write, by the instruction simulator."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory_map import memory_size
from intloom.compiler.program.program import Program
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Instruction, Kind, LoadTarget
from intloom.hw.spec.params import HardwareParams
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.result import Arrays
from intloom.sim.rtl.write_log import Writer

Words = NDArray[np.int64]


def writer_of(instruction: Instruction) -> Writer | None:
    """The write port of an instruction's results; None for instructions that write no memory."""
    match instruction.kind:
        case Kind.LOAD:
            return Writer.LOAD_WEIGHT if instruction["target"] == LoadTarget.WEIGHT else Writer.LOAD_SCRATCH
        case Kind.STORE:
            return Writer.STORE
        case Kind.CONV:
            return Writer.MAC
        case Kind.BEGIN | Kind.END | Kind.VTABLE | Kind.VEXP:
            return None
        case _:
            return Writer.VEC


def write_count(instruction: Instruction, params: HardwareParams) -> int:
    """How many writes the hardware makes for an instruction."""
    i = instruction
    match i.kind:
        case Kind.LOAD | Kind.STORE:
            return move_words(i)
        case Kind.CONV:
            # A pixel's block of columns is written `lanes` bytes at a time.
            return i["out_h"] * i["out_w"] * i["out_blocks"] * (params.cols // params.lanes)
        case Kind.BEGIN | Kind.END | Kind.VTABLE | Kind.VEXP:
            return 0
        case _:
            return i["out_h"] * i["out_w"] * i.values.get("blocks", 1)


def writes_by_instruction(program: Program, writes: NDArray[np.void]) -> Iterator[tuple[int, Writer, NDArray[np.void]]]:
    """Every instruction that writes memory, with its port and its records; after an early end some are missing."""
    by_writer = {w: writes[writes["writer"] == w] for w in Writer}
    position = dict.fromkeys(Writer, 0)
    for index, instruction in enumerate(program.instructions):
        if (writer := writer_of(instruction)) is not None:
            # Each write port writes in program order, so a count per port assigns every write to its instruction.
            first = position[writer]
            position[writer] += write_count(instruction, program.params)
            yield index, writer, by_writer[writer][first : position[writer]]


@dataclass(frozen=True)
class ExpectedWrite:
    """Memory content right after an instruction, at the words that it may write."""

    index: int
    writer: Writer
    memory: Memory
    words: Words
    """The words that it may write."""
    content: NDArray[np.uint8]
    """The whole memory, word by word; valid until the next step."""


def expected_writes(program: Program, inputs: Arrays) -> Iterator[ExpectedWrite]:
    """Every writing instruction in program order."""
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    while not simulator.finished:
        index = simulator.step()
        instruction = program.instructions[index]
        writer = writer_of(instruction)
        if writer is None:
            continue
        target = next(a for a in footprint(instruction, program.params) if a.write)
        machine = simulator.machine
        stores = {Memory.DRAM: machine.dram, Memory.SCRATCH: machine.scratch, Memory.WEIGHT: machine.weights}
        # A view and not a copy, so a caller must compare before the next step.
        words = addresses(target) % memory_size(program, target.memory)
        yield ExpectedWrite(index, writer, target.memory, words, stores[target.memory].view(np.uint8))
