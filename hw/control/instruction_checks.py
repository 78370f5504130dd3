"""Instruction checks: whether an instruction is legal, and which unit executes it."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.common.errors import EncodingError
from intloom.hw.decode import bad_fields, instruction_layout, used_bits
from intloom.hw.ports import CAUSE_BITS
from intloom.hw.spec.isa import (
    BY_OPCODE,
    CHECK_LSB,
    INSTRUCTION_BITS,
    INSTRUCTIONS,
    ISA_VERSION,
    InstructionSpec,
    Kind,
    Unit,
    decode,
)
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause

UNIT_BITS = 3
CHECK_LAYOUT = data.StructLayout({"cause": CAUSE_BITS, "unit": UNIT_BITS, "begin": 1, "end": 1})
"""The fault of the instruction, or NONE; its unit; whether it is BEGIN or END."""


def _missing(spec: InstructionSpec, params: HardwareParams) -> list[str]:
    """Fields that hardware with these parameters does not implement."""
    return [f.name for f in spec.body if f.requires and not getattr(params, f.requires)]


class InstructionChecker(wiring.Component):
    """Checks an instruction against the instruction table.

    It checks the opcode, the limits of all fields, zeros in fields that the hardware does not implement and between the
    last field and the check bits, and for BEGIN the instruction set version and the parameter fingerprint.

    Parameters
    ----------
    params
        The accelerator's parameters, whose fingerprint BEGIN must carry.

    Members
    -------
    instruction
        The instruction.
    result
        Cause of the fault or NONE, unit, and whether the instruction is BEGIN or END.

    Handshake
    ---------
    None. `result` follows `instruction`.

    Timing
    ------
    `result` is valid once `instruction` has been stable for `LATENCY` = 2 cycles: 1 register stage, and 1 cycle for the
    selection by opcode.

    Requirements
    ------------
    `instruction` is stable until `result` has been read.

    Reset and faults
    ----------------
    No state that outlasts `LATENCY` cycles. Faults are reported in `result.cause`.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__({"instruction": In(INSTRUCTION_BITS), "result": Out(CHECK_LAYOUT)})

    @staticmethod
    def model(code: bytes, params: HardwareParams) -> tuple[Cause, Unit]:
        """Cause and unit of an encoded instruction; what the decoder rejects is illegal."""
        spec = BY_OPCODE.get(code[0])
        if spec is None:
            return Cause.BAD_OPCODE, Unit.CONTROL
        try:
            instruction = decode(code)
            legal = not any(instruction[name] for name in _missing(spec, params))
        except EncodingError:
            legal = False
        if spec.kind is Kind.BEGIN:
            word = int.from_bytes(code, "little")
            ours = {"version": ISA_VERSION, "fingerprint": params.fingerprint()}
            found = {name: word >> spec.offsets[name] & (1 << spec.field(name).width) - 1 for name in ours}
            if found != ours:
                return Cause.WRONG_PROGRAM, spec.unit
        return (Cause.NONE if legal else Cause.BAD_FIELD), spec.unit

    def elaborate(self, platform: object) -> Module:
        """One case per row of the table; the field checks of all rows are registered before the selection by opcode."""
        m = Module()
        result = self.result
        past_end = self._past_end(m)
        views = {spec.kind: data.View(instruction_layout(spec.kind), self.instruction) for spec in INSTRUCTIONS}
        # One register per kind: the checks of all fields and the selection by opcode do not share a cycle.
        bad = {spec.kind: Signal(name=f"bad_{spec.kind.lower()}") for spec in INSTRUCTIONS}
        for spec in INSTRUCTIONS:
            fields = views[spec.kind]
            missing = Cat(fields[name] for name in _missing(spec, self._params)).any()
            m.d.sync += bad[spec.kind].eq(bad_fields(spec.kind, fields) | missing | past_end[spec.kind])
        ours, begin = Signal(), views[Kind.BEGIN]
        m.d.sync += ours.eq((begin.version == ISA_VERSION) & (begin.fingerprint == self._params.fingerprint()))
        m.d.comb += [result.cause.eq(Cause.BAD_OPCODE), result.unit.eq(Unit.CONTROL)]
        with m.Switch(self.instruction[: INSTRUCTIONS[0].field("opcode").width]):
            for spec in INSTRUCTIONS:
                with m.Case(spec.opcode):
                    m.d.comb += [result.unit.eq(spec.unit), result.cause.eq(Cause.NONE)]
                    m.d.comb += [result.begin.eq(spec.kind is Kind.BEGIN), result.end.eq(spec.kind is Kind.END)]
                    with m.If(bad[spec.kind]):
                        m.d.comb += result.cause.eq(Cause.BAD_FIELD)
                    if spec.kind is Kind.BEGIN:
                        self._check_begin(m, ours)
        return m

    def _past_end(self, m: Module) -> dict[Kind, Value]:
        """For each kind, whether bits between its last field and the check bits are set.

        Ranges that several kinds share are tested once.
        """
        ends = sorted({used_bits(spec.kind) for spec in INSTRUCTIONS} | {CHECK_LSB})
        above: dict[int, Value] = {CHECK_LSB: Const(0, 1)}
        for low, high in reversed(list(pairwise(ends))):
            rest = Signal(name=f"from{low}")
            m.d.sync += rest.eq(self.instruction[low:high].any())
            above[low] = rest | above[high]
        return {spec.kind: above[used_bits(spec.kind)] for spec in INSTRUCTIONS}

    def _check_begin(self, m: Module, ours: Signal) -> None:
        with m.If(~ours):
            m.d.comb += self.result.cause.eq(Cause.WRONG_PROGRAM)
