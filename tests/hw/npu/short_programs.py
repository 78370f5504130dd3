"""Short programs in which all units work side by side, some with an error, and the memory that they leave."""

import random
from dataclasses import dataclass

import numpy as np

from intloom.hw.spec.arith import Affine, Scale
from intloom.hw.spec.conv_stream import conv_stream
from intloom.hw.spec.formats import pack_channels, pack_residual
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, TableUse, Unit, encode, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check
from intloom.hw.vector.operation import kinds_of
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.words import words_of

MEMORY_WORDS = 4096
_PROGRAM_WORDS = range(1536, 1552)
_TARGET = 1024
"""First word in memory of what stores write."""
_INPUTS, _MAC_RESULTS, _VECTOR_RESULTS, _LOADED = range(48), range(48, 64), range(64, 80), range(80, 128)
"""Words of the scratchpad."""
_WEIGHT_WORDS = 96
_CONVS = 5
"""Of a program of CONVs that all differ."""
_WEIGHTS_AT = 256
"""Word in memory of the weights."""
_TABLES = {Kind.VTABLE, Kind.VEXP, Kind.VSOFTMAX}
"""Instructions that need, or load, more words than a short program moves."""
_ILLEGAL = bytes([0x7F]) + bytes(INSTRUCTION_BYTES - 1)


def _blocks_at(params: HardwareParams) -> int:
    """First word of every CONV's blocks: a table and residual constants fit before it."""
    return params.table_words + params.residual_words


class _Writer:
    """A short program in which all units work side by side on words of their own."""

    def __init__(self, rng: random.Random, params: HardwareParams) -> None:
        self._rng, self._params = rng, params
        self._kinds = (Kind.LOAD, Kind.STORE, Kind.CONV, *(k for k in kinds_of(params) if k not in _TABLES))
        self._done = dict.fromkeys(QUEUED_UNITS, 0)
        self.instructions: list[Instruction] = [begin(params)]

    def add(self, instruction: Instruction, **waits: int) -> None:
        """Append an instruction that waits for these counts."""
        self._done[instruction.unit] += 1
        self.instructions.append(instruction.with_fields(**waits))

    def all_waits(self, unit: Unit) -> dict[str, int]:
        """Waits for all instructions so far, but for those of the unit itself."""
        return {f"wait_{u.name.lower()}": n for u, n in self._done.items() if u is not unit}

    def body(self, count: int) -> None:
        """Fill the memories; then instructions that wait for nothing else."""
        last = _LOADED[-1] + 1
        self.add(make(Kind.LOAD, dram=0, n0=last))
        self.add(make(Kind.LOAD, dram=_WEIGHTS_AT, n0=_WEIGHT_WORDS, target=1))
        for _ in range(count):
            kind = self._rng.choice(self._kinds)
            found = None
            while found is None or not _fits(found, self._params):
                found = self._random(kind)
            self.add(found, wait_load=2)
        first = _MAC_RESULTS[0]
        drain = make(Kind.STORE, local=first, dram=_TARGET + 256, n0=last - first)
        self.add(drain, **self.all_waits(Unit.STORE))
        self.instructions.append(make(Kind.END, **self.all_waits(Unit.CONTROL)))

    def convs(self) -> dict[int, bytes]:
        """CONVs of one block, each with constants and results of its own; returns the constants by weight word.

        All add a residual. The next one's constants are loaded before the results of a short CONV are read.
        """
        constants: dict[int, bytes] = {}
        convs: list[Instruction] = []
        at, results = 0, len(_INPUTS)
        for number in range(_CONVS):
            own = {"weights": at, "out_base": results, "out_blocks": 1}
            own |= self._residual_fields() | {"table": TableUse.LOAD if number == 1 else TableUse.NONE}
            conv = self._random(Kind.CONV).with_fields(**own)
            stream = conv_stream(conv, self._params)
            constants[at + stream.residual_start] = _residual(self._rng)
            constants[at + stream.blocks_start] = _channels(self._rng, self._params)
            convs.append(conv)
            at, results = at + stream.words, results + conv["out_plane"]
        # Results too, which have gaps.
        self.add(make(Kind.LOAD, n0=results))
        self.add(make(Kind.LOAD, dram=_WEIGHTS_AT, n0=at, target=1))
        for conv in convs:
            self.add(conv, wait_load=2)
        drain = make(Kind.STORE, local=len(_INPUTS), dram=_TARGET, n0=results - len(_INPUTS))
        self.add(drain, **self.all_waits(Unit.STORE))
        self.instructions.append(make(Kind.END, **self.all_waits(Unit.CONTROL)))
        return constants

    def _random(self, kind: Kind) -> Instruction:
        rng = self._rng
        if kind in (Kind.LOAD, Kind.STORE):
            # Most runs and planes are short: each begins with states of its own.
            moved = {name: rng.choice((1, 1, 2, 5)) for name in ("n0", "n1", "n2")}
            moved |= {"dram_s1": rng.randint(4, 9), "dram_s2": rng.randint(12, 30), "local_s1": 2, "local_s2": 5}
            first = rng.choice(_LOADED if kind is Kind.LOAD else _INPUTS)
            return make(kind, dram=rng.randrange(64) + (_TARGET if kind is Kind.STORE else 0), local=first, **moved)
        shape = {"out_w": rng.randint(1, 4), "out_h": rng.randint(1, 3), "out_row": 4}
        if kind is Kind.CONV:
            inputs = {"in_w": 5, "in_h": 4, "in_row": 5, "in_base": rng.randrange(12), "kernel_h": rng.randint(1, 2)}
            zero = {"zp_in": rng.randint(-128, 127), "subtract_zp_in": rng.randrange(1 + self._params.weight_sums)}
            # Short strips of several blocks wait for an accumulator bank.
            blocks = {"out_blocks": rng.randint(1, 3), "out_plane": 4 * shape["out_h"]}
            return make(
                kind, **shape, **inputs, **zero, **blocks, **self._epilogue_fields(),
                out_base=_MAC_RESULTS[rng.randrange(8)], kernel_w=rng.randint(1, 2),
            )  # fmt: skip
        return make(kind, **shape, **self._vector_fields(kind), out_base=_VECTOR_RESULTS[0])

    def _epilogue_fields(self) -> dict[str, int]:
        """Options of a CONV that each have constants of their own."""
        rng = self._rng
        options = {"weight_zero_points": rng.getrandbits(1), "zp_out": rng.randint(-128, 127)}
        options["table"] = TableUse.LOAD if rng.random() < 0.2 else TableUse.NONE
        if rng.getrandbits(1):
            options |= self._residual_fields()
        stream = conv_stream(make(Kind.CONV, **options), self._params)
        return options | {"weights": _blocks_at(self._params) - stream.blocks_start}

    def _residual_fields(self) -> dict[str, int]:
        rng = self._rng
        residual = {"res_base": rng.randrange(12), "res_row": 4, "res_plane": rng.randint(0, 12)}
        return residual | {"residual": 1, "res_shift": 9, "res_even": rng.getrandbits(1)}

    def _vector_fields(self, kind: Kind) -> dict[str, int]:
        """Operands and constants."""
        rng = self._rng
        fields = {"a_base": rng.randrange(12), "a_row": 5}
        if kind in (Kind.VADD, Kind.VMUL, Kind.VAVG):
            factor = rng.randint(-900, 900)
            other = rng.randint(-900, 900) if kind is Kind.VADD else factor
            fields |= {"m1": factor, "m2": other, "shift": 9, "c": rng.randint(-900, 900)}
        if kind in (Kind.VADD, Kind.VMUL):
            fields |= {"b_base": rng.randrange(12), "b_row": 5}
        if kind in (Kind.VMAX, Kind.VAVG, Kind.VDEPTHWISE):
            fields |= {"in_w": 5, "in_h": 4, "kernel_h": rng.randint(1, 2), "kernel_w": rng.randint(1, 3)}
        if kind is Kind.VDEPTHWISE:
            fields |= {"b_base": rng.randrange(20), "stride_w": rng.randint(1, 2)}
        return fields


def _fits(i: Instruction, params: HardwareParams) -> bool:
    """Whether an instruction reads inputs and writes its unit's words."""
    words = words_of(i, params)
    results = {Unit.LOAD: _LOADED, Unit.MAC: _MAC_RESULTS, Unit.VEC: _VECTOR_RESULTS, Unit.STORE: range(0)}[i.unit]
    scratch = {*words.reads.get("scratch", ())} <= {*_INPUTS} and {*words.writes.get("scratch", ())} <= {*results}
    return scratch and all(at < _WEIGHT_WORDS for at in words.reads.get("weight", ()))


@dataclass(frozen=True)
class Program:
    """A program and its memory."""

    first_word: int
    instructions: int
    before: bytes
    after: bytes
    """The memory at the end; empty if the program ends in an error."""
    cycles: int = 20_000
    """The most that it takes, with stalls."""
    watchdog: int = 600


def _channels(rng: random.Random, params: HardwareParams) -> bytes:
    """Channel constants of an output block."""
    biases = [rng.randint(-3000, 3000) for _ in range(params.cols)]
    return pack_channels(
        biases, [Scale(rng.getrandbits(params.mantissa_bits), params.mantissa_bits + 8) for _ in biases]
    )


def _residual(rng: random.Random) -> bytes:
    """Residual constants."""
    return pack_residual(Affine(rng.randint(50, 400), rng.randint(50, 400), rng.randint(-900, 900), 9))


def _with_words(memory: bytes, params: HardwareParams, words: dict[int, bytes]) -> bytes:
    """The memory with data from these words on."""
    changed = bytearray(memory)
    for word, data in words.items():
        at = word * params.word_bytes
        changed[at : at + len(data)] = data
    return bytes(changed)


def _result(params: HardwareParams, memory: bytes, program: list[Instruction]) -> bytes:
    machine = blank_machine(params, np.frombuffer(memory, np.uint8).copy())
    for instruction in program:
        SEMANTICS[instruction.kind](machine, instruction)
    return machine.dram.tobytes()


def _late_fault(rng: random.Random, params: HardwareParams) -> Instruction:
    """A convolution whose only tile leaves the scratchpad at one of its last pixels: a halt does not stop a tile."""
    inside = rng.randint(params.strip // 2, params.strip - 1)
    row = {"in_w": params.strip, "out_w": params.strip, "in_base": params.scratch_words - inside}
    return make(Kind.CONV, wait_load=2, out_base=_MAC_RESULTS[0], **row)


def random_short_program(rng: random.Random, params: HardwareParams, kind: int) -> Program:
    """A program: 0 right, 1 with words after its end; wrong: 2 opcode, 3 address, 4 wait, 5 length, 6 late address."""
    writer = _Writer(rng, params)
    writer.body(rng.randint(3, 14))
    program = writer.instructions
    # In the second half stores may be in flight.
    at = rng.randint(len(program) // 2, len(program) - 1)
    codes = [encode(i) for i in program]
    if kind == 2:
        codes.insert(at, _ILLEGAL)
    elif kind == 3:
        outside = rng.choice((Kind.LOAD, Kind.STORE, Kind.CONV, Kind.VCOPY))
        name = {Kind.LOAD: "local", Kind.STORE: "local", Kind.CONV: "in_base", Kind.VCOPY: "a_base"}[outside]
        # Its data arrives while the fault stops the program.
        load = make(Kind.LOAD, local=_LOADED[0], n0=len(_LOADED))
        codes[at:at] = [encode(load), encode(make(outside, wait_load=2, **{name: params.scratch_words}))]
    elif kind == 6:
        codes.insert(at, encode(_late_fault(rng, params)))
    elif kind == 4:
        codes[-1] = encode(program[-1].with_fields(wait_vec=100))
    length = len(codes) - (kind == 5) + 40 * (kind == 1)
    first_word = rng.choice(_PROGRAM_WORDS)
    memory, blocks = rng.randbytes(MEMORY_WORDS * params.word_bytes), _WEIGHTS_AT + _blocks_at(params)
    constants = {blocks: _channels(rng, params), blocks - params.residual_words: _residual(rng)}
    memory = _with_words(memory, params, constants | {first_word: add_check(codes)})
    return Program(first_word, length, memory, _result(params, memory, program) if kind < 2 else b"")


def program_of_different_convs(rng: random.Random, params: HardwareParams) -> Program:
    """A program whose CONVs follow each other, so that constants of one are loaded while others are in use."""
    writer = _Writer(rng, params)
    constants = {_WEIGHTS_AT + word: data for word, data in writer.convs().items()}
    program, first_word = writer.instructions, rng.choice(_PROGRAM_WORDS)
    memory = rng.randbytes(MEMORY_WORDS * params.word_bytes)
    memory = _with_words(memory, params, constants | {first_word: add_check(encode(i) for i in program)})
    return Program(first_word, len(program), memory, _result(params, memory, program))
