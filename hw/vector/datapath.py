"""The vector unit's arithmetic: operands, affine operation, table and rotation, one slice a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.affine import AFFINE_LAYOUT, AffineConstants, AffineLane
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.byte_table import ByteTable
from intloom.hw.vector.operand_stage import LANE_FUNCTIONS, WIDE_BITS, OperandStage
from intloom.hw.vector.operation import OPERATION_LAYOUT
from intloom.hw.vector.pool import SUM_BITS
from intloom.hw.vector.word_assembler import WordAssembler


class Datapath(wiring.Component):
    """Turns slices of two words, or of window sums, into result words, in a pipeline that never stalls.

    Stages: `OperandStage`, one `AffineLane` per lane, `ByteTable`, `WordAssembler`.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    operation
        The decoded instruction.
    table_en, table_index, table_byte
        Write a byte of the table.
    valid, a, b, total
        A slice of two words, or of a window's sums.
    bytes_valid, bytes
        A slice of results of a depthwise convolution or a Softmax, which passes only table and assembly.
    result_valid, result
        A result word.

    Handshake
    ---------
    No back-pressure. The issuing logic takes a result FIFO credit for each word before its first slice.

    Timing
    ------
    One slice a cycle. From a word's last slice to its result: `LATENCY` = 16 cycles (5 operands, 7 affine, 2 table, 2
    assembly), from its last slice of `bytes`: `BYTES_LATENCY` = 4. A table byte is written one cycle after `table_en`.

    Requirements
    ------------
    `operation` is stable while words are in flight. The table is written only while none are. Slices come either on `a`
    or on `bytes` during an operation.

    Reset and faults
    ----------------
    Soft reset clears the valid flags, so words in flight are lost. Constants and table contents survive. There are no
    faults.
    """

    BYTES_LATENCY = ByteTable.LATENCY + WordAssembler.LATENCY
    LATENCY = OperandStage.LATENCY + AffineLane.LATENCY + BYTES_LATENCY

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        part = data.ArrayLayout(signed(8), params.vector_lanes)
        super().__init__(
            {
                "operation": In(OPERATION_LAYOUT),
                "table_en": In(1),
                "table_index": In(range(TABLE_BYTES)),
                "table_byte": In(8),
                "valid": In(1),
                "a": In(part),
                "b": In(part),
                "total": In(data.ArrayLayout(signed(SUM_BITS), params.vector_lanes)),
                "bytes_valid": In(1),
                "bytes": In(8 * params.vector_lanes),
                "result_valid": Out(1),
                "result": Out(8 * params.word_bytes),
            }
        )

    @staticmethod
    def model(a: bytes, b: bytes, affine: Affine, table: bytes, rotate: int) -> bytes:
        """The result of a pair of words under an affine operation, a table and a rotation."""
        pairs = zip(memoryview(a).cast("b"), memoryview(b).cast("b"), strict=True)
        sums = bytes(AffineLane.model(x1, x2, affine) & 0xFF for x1, x2 in pairs)
        return WordAssembler.model(ByteTable.model(sums, table, True), rotate)

    def elaborate(self, platform: object) -> Module:
        """The stages in order."""
        m = Module()
        operation, params = self.operation, self._params
        m.submodules.operands = operands = OperandStage(params)
        m.submodules.table = table = ByteTable(params)
        # Table memories are spread over the lanes: this stage cuts the route from the write pulse to all of them.
        write_en = Signal()
        write_index, write_byte = (
            Signal.like(port, reset_less=True, name=f"routed_{name}")
            for name, port in (("index", self.table_index), ("byte", self.table_byte))
        )
        m.d.sync += [write_en.eq(self.table_en), write_index.eq(self.table_index), write_byte.eq(self.table_byte)]
        m.submodules.assembler = assembler = WordAssembler(params)
        m.d.comb += [
            *(getattr(operands, name).eq(getattr(self, name)) for name in ("valid", "a", "b", "total")),
            *(getattr(operands, name).eq(operation[name]) for name in ("zp_a", "zp_b", *LANE_FUNCTIONS)),
            table.write_en.eq(write_en),
            table.write_index.eq(write_index),
            table.write_byte.eq(write_byte),
            table.use.eq(operation.table),
            assembler.amount.eq(operation.rotate),
            assembler.valid.eq(table.result_valid),
            assembler.part.eq(table.result),
            self.result_valid.eq(assembler.result_valid),
            self.result.eq(assembler.result),
        ]
        lanes = self._scale(m, operands)
        m.d.comb += [
            table.valid.eq(lanes[0].result_valid | self.bytes_valid),
            table.part.eq(Mux(self.bytes_valid, self.bytes, Cat(lane.result for lane in lanes))),
        ]
        return m

    def _scale(self, m: Module, operands: OperandStage) -> list[AffineLane]:
        m.submodules.constants = constants = AffineConstants()
        m.d.comb += [constants.operation[name].eq(self.operation[name]) for name in AFFINE_LAYOUT.members]
        lanes = [AffineLane(self._params.wide_multipliers, x1_bits=WIDE_BITS) for _ in range(self._params.vector_lanes)]
        for number, lane in enumerate(lanes):
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.valid.eq(operands.result_valid),
                lane.x1.eq(operands.x1[number]),
                lane.x2.eq(operands.x2[number]),
                lane.constants.eq(constants.prepared),
            ]
        return lanes
