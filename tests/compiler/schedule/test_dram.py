"""The layout of DRAM: constants, then buffers."""

from intloom.compiler.schedule.emit.dram import lay_out
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

BASE = preset("base")


def test_equal_constants_are_stored_once_and_start_at_words():
    maker = GraphMaker(1)
    stages = build_stages(maker.graph(maker.conv(maker.input(16, 4, 4), 16)), BASE, keep_intermediates=False)
    constants = [b"a" * 17, b"b" * 16, b"a" * 17]
    dram = lay_out(stages, make_plan(stages, None), constants, {})
    assert [dram.address(data) for data in constants] == [0, 2, 0]
    assert dram.image == b"a" * 17 + bytes(15) + b"b" * 16
    buffers = [v.buffer for v in (*stages.stages[0].operands, stages.stages[0].out)]
    assert sorted(map(dram.address, buffers)) == [3, 3 + 16]
    assert dram.words == 3 + 2 * 16
