"""Whether an instruction is one of the table's, and which queue it belongs to."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.common.errors import EncodingError
from intloom.hw.decode import bad_fields, instruction_layout, used_bits
from intloom.hw.spec.isa import BY_OPCODE, INSTRUCTION_BITS, INSTRUCTIONS, ISA_VERSION, Kind, Unit, decode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause

UNIT_BITS = 3
CHECK_LAYOUT = data.StructLayout({"cause": 4, "unit": UNIT_BITS, "begin": 1, "end": 1})
"""The fault that the instruction is by itself, or NONE; its unit; whether it is BEGIN or END."""


class InstructionChecker(wiring.Component):
    """Judges an instruction by the table alone; the verdict is right when the instruction has stood for `LATENCY`.

    Parameters
    ----------
    params
        The accelerator's parameters, whose fingerprint BEGIN must carry.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__({"instruction": In(INSTRUCTION_BITS), "verdict": Out(CHECK_LAYOUT)})

    @staticmethod
    def model(code: bytes, params: HardwareParams) -> tuple[Cause, Unit]:
        """The verdict on an encoded instruction: what the decoder refuses is illegal."""
        spec = BY_OPCODE.get(code[0])
        if spec is None:
            return Cause.BAD_OPCODE, Unit.CONTROL
        legal = True
        try:
            decode(code)
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
        """One case for every row of the table; what each row refuses is known before its case is chosen."""
        m = Module()
        verdict = self.verdict
        past_end = self._past_end(m)
        views = {spec.kind: data.View(instruction_layout(spec.kind), self.instruction) for spec in INSTRUCTIONS}
        bad = {spec.kind: Signal(name=f"bad_{spec.kind.lower()}") for spec in INSTRUCTIONS}
        m.d.sync += [bad[kind].eq(bad_fields(kind, fields) | past_end[kind]) for kind, fields in views.items()]
        ours, begin = Signal(), views[Kind.BEGIN]
        m.d.sync += ours.eq((begin.version == ISA_VERSION) & (begin.fingerprint == self._params.fingerprint()))
        m.d.comb += [verdict.cause.eq(Cause.BAD_OPCODE), verdict.unit.eq(Unit.CONTROL)]
        with m.Switch(self.instruction[: INSTRUCTIONS[0].field("opcode").width]):
            for spec in INSTRUCTIONS:
                with m.Case(spec.opcode):
                    m.d.comb += [verdict.unit.eq(spec.unit), verdict.cause.eq(Cause.NONE)]
                    m.d.comb += [verdict.begin.eq(spec.kind is Kind.BEGIN), verdict.end.eq(spec.kind is Kind.END)]
                    with m.If(bad[spec.kind]):
                        m.d.comb += verdict.cause.eq(Cause.BAD_FIELD)
                    if spec.kind is Kind.BEGIN:
                        self._check_begin(m, ours)
        return m

    def _past_end(self, m: Module) -> dict[Kind, Value]:
        """For every kind, whether bits above its last field are set: each stretch of bits is looked at once, before."""
        ends = sorted({used_bits(spec.kind) for spec in INSTRUCTIONS} | {INSTRUCTION_BITS})
        above: dict[int, Value] = {INSTRUCTION_BITS: Const(0, 1)}
        for low, high in reversed(list(pairwise(ends))):
            stretch = Signal(name=f"from{low}")
            m.d.sync += stretch.eq(self.instruction[low:high].any())
            above[low] = stretch | above[high]
        return {spec.kind: above[used_bits(spec.kind)] for spec in INSTRUCTIONS}

    def _check_begin(self, m: Module, ours: Signal) -> None:
        with m.If(~ours):
            m.d.comb += self.verdict.cause.eq(Cause.WRONG_PROGRAM)
