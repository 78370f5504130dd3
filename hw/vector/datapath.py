"""The vector unit's arithmetic: operands, affine law, table and rotation, a word a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.affine import AffineLane
from hw.spec.params import TABLE_BYTES, HardwareParams

from .job import JOB_LAYOUT
from .operands import Operands
from .pool import SUM_BITS
from .rotate import ByteRotator
from .table import ByteTable


class Datapath(wiring.Component):
    """Takes words and sums, gives result words `LATENCY` cycles later; it never stops.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    job
        The constants; they must hold while words are under way.
    table_en, table_row, table_word
        Load a word of the table.
    valid, a, b, total
        Two words, or the sums of a window.
    result_valid, result
        The result.
    """

    LATENCY = Operands.LATENCY + AffineLane.LATENCY + ByteTable.LATENCY + ByteRotator.LATENCY

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        word = data.ArrayLayout(signed(8), params.word_bytes)
        super().__init__(
            {
                "job": In(JOB_LAYOUT),
                "table_en": In(1),
                "table_row": In(range(TABLE_BYTES // params.word_bytes)),
                "table_word": In(8 * params.word_bytes),
                "valid": In(1),
                "a": In(word),
                "b": In(word),
                "total": In(data.ArrayLayout(signed(SUM_BITS), params.word_bytes)),
                "result_valid": Out(1),
                "result": Out(8 * params.word_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One part after the other."""
        m = Module()
        job, params = self.job, self._params
        m.submodules.operands = operands = Operands(params.word_bytes, params.vector_multiply, params.vector_average)
        m.submodules.table = table = ByteTable(params.word_bytes)
        m.submodules.rotator = rotator = ByteRotator(params.word_bytes)
        m.d.comb += [
            *(getattr(operands, name).eq(getattr(self, name)) for name in ("valid", "a", "b", "total")),
            *(getattr(operands, name).eq(job[name]) for name in ("zp_a", "zp_b", "multiply", "average")),
            table.write_en.eq(self.table_en),
            table.write_row.eq(self.table_row),
            table.write_word.eq(self.table_word),
            table.use.eq(job.table),
            rotator.amount.eq(job.rotate),
            rotator.valid.eq(table.result_valid),
            rotator.word.eq(table.result),
            self.result_valid.eq(rotator.result_valid),
            self.result.eq(rotator.result),
        ]
        lanes = self._scale(m, operands)
        m.d.comb += [table.valid.eq(lanes[0].result_valid), table.word.eq(Cat(lane.result for lane in lanes))]
        return m

    def _scale(self, m: Module, operands: Operands) -> list[AffineLane]:
        lanes = [AffineLane() for _ in range(self._params.word_bytes)]
        for number, lane in enumerate(lanes):
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.valid.eq(operands.result_valid),
                lane.x1.eq(operands.x1[number]),
                lane.x2.eq(operands.x2[number]),
                *(getattr(lane, name).eq(self.job[name]) for name in ("m1", "m2", "c", "shift", "even")),
                lane.high.eq(self.job.multiply | self.job.average),
            ]
        return lanes
