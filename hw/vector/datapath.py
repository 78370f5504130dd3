"""The vector unit's arithmetic: operands, affine law, table and rotation, a slice of a word a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.affine import AFFINE_LAYOUT, AffineConstants, AffineLane
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.params import TABLE_BYTES, HardwareParams
from intloom.hw.vector.assemble import WordAssembler
from intloom.hw.vector.job import JOB_LAYOUT
from intloom.hw.vector.operands import WIDE_BITS, Operands
from intloom.hw.vector.pool import SUM_BITS
from intloom.hw.vector.table import ByteTable


class Datapath(wiring.Component):
    """Takes slices of words and sums, gives result words `LATENCY` cycles after their last slice; it never stops.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    job
        The constants; they must hold while words are under way.
    table_en, table_index, table_byte
        Load a byte of the table.
    valid, a, b, total
        A slice of two words, or of the sums of a window.
    result_valid, result
        The result.
    """

    LATENCY = Operands.LATENCY + AffineLane.LATENCY + ByteTable.LATENCY + WordAssembler.LATENCY

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        part = data.ArrayLayout(signed(8), params.vector_lanes)
        super().__init__(
            {
                "job": In(JOB_LAYOUT),
                "table_en": In(1),
                "table_index": In(range(TABLE_BYTES)),
                "table_byte": In(8),
                "valid": In(1),
                "a": In(part),
                "b": In(part),
                "total": In(data.ArrayLayout(signed(SUM_BITS), params.vector_lanes)),
                "result_valid": Out(1),
                "result": Out(8 * params.word_bytes),
            }
        )

    @staticmethod
    def model(a: bytes, b: bytes, affine: Affine, table: bytes, rotate: int) -> bytes:
        """What becomes of a pair of words in a sum that goes through the table."""
        pairs = zip(memoryview(a).cast("b"), memoryview(b).cast("b"), strict=True)
        sums = bytes(AffineLane.model(x1, x2, affine) & 0xFF for x1, x2 in pairs)
        return WordAssembler.model(ByteTable.model(sums, table, True), rotate)

    def elaborate(self, platform: object) -> Module:
        """One part after the other."""
        m = Module()
        job, params = self.job, self._params
        m.submodules.operands = operands = Operands(params)
        m.submodules.table = table = ByteTable(params)
        # The table has a memory in every corner of the datapath.
        write_en = Signal()
        write_index, write_byte = (
            Signal.like(port, reset_less=True, name=f"near_{name}")
            for name, port in (("index", self.table_index), ("byte", self.table_byte))
        )
        m.d.sync += [write_en.eq(self.table_en), write_index.eq(self.table_index), write_byte.eq(self.table_byte)]
        m.submodules.assembler = assembler = WordAssembler(params)
        m.d.comb += [
            *(getattr(operands, name).eq(getattr(self, name)) for name in ("valid", "a", "b", "total")),
            *(getattr(operands, name).eq(job[name]) for name in ("zp_a", "zp_b", "multiply", "average")),
            table.write_en.eq(write_en),
            table.write_index.eq(write_index),
            table.write_byte.eq(write_byte),
            table.use.eq(job.table),
            assembler.amount.eq(job.rotate),
            assembler.valid.eq(table.result_valid),
            assembler.part.eq(table.result),
            self.result_valid.eq(assembler.result_valid),
            self.result.eq(assembler.result),
        ]
        lanes = self._scale(m, operands)
        m.d.comb += [table.valid.eq(lanes[0].result_valid), table.part.eq(Cat(lane.result for lane in lanes))]
        return m

    def _scale(self, m: Module, operands: Operands) -> list[AffineLane]:
        m.submodules.constants = constants = AffineConstants()
        m.d.comb += [constants.operation[name].eq(self.job[name]) for name in AFFINE_LAYOUT.members]
        lanes = [AffineLane(x1_bits=WIDE_BITS) for _ in range(self._params.vector_lanes)]
        for number, lane in enumerate(lanes):
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.valid.eq(operands.result_valid),
                lane.x1.eq(operands.x1[number]),
                lane.x2.eq(operands.x2[number]),
                lane.constants.eq(constants.prepared),
            ]
        return lanes
