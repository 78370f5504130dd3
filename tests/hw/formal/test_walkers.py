"""Address sequences of all units, for ever, under any back-pressure, by induction.

Addresses, steps, coordinates and counts have any value that the walker's requirements allow. The references are nested
loops that count up and add the step of each loop. Between these proofs and the written words lie `RasterSetup`,
memories and lanes: `test_instructions.py` enumerates them.
"""

from pathlib import Path
from typing import Any

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import wiring

from intloom.hw.dma.address_walker import AddressWalker
from intloom.hw.dma.runs import RunWalker, move_layout
from intloom.hw.down_counter import DownCounter
from intloom.hw.mac.output.output_walker import WALK, OutputWalker
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.vector.raster_walker import RASTER_LAYOUT, RasterWalker
from intloom.hw.vector.window_walker import WINDOW_LAYOUT, WindowWalker
from tests.hw.formal.order import FreeBench
from tests.hw.formal.planted import each_night, planted, rebased, with_locals
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano")
NARROW_LANES = preset("nano").replace(rows=4, cols=4, lanes=2, axi_data_bits=32)
"""Two groups of channels in a pixel, and two in a word."""


def counter_holds(counter: DownCounter, left: Value) -> Value:
    """Whether a loop counter and its flag have `left` iterations left."""
    return (counter._left == left) & (counter.last == (left == 1))


class CheckedRaster(RasterWalker):
    """Blocks, lines and pixels of the vector unit, beside nested loops that add up addresses; all counts are free."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        c, word = self.config, self.o.payload
        m.d.comb += [Value.cast(c).eq(AnyConst(RASTER_LAYOUT.size)), Assume(~(self.start & self.active))]
        limits = {name: c[name] for name in ("blocks", "lines", "pixels", "line_repeat", "pixel_repeat")}
        m.d.comb += [Assume(limit != 0) for limit in limits.values()]
        block, line, pixel, repeated, held = (Signal.like(limit, name=f"{n}_done") for n, limit in limits.items())
        plane, row, addr = (Signal(SCRATCH_BITS, name=f"{name}_addr") for name in ("plane", "row", "word"))
        line_at, pixel_at = Signal.like(c.line_at, name="line_is_at"), Signal.like(c.pixel_at, name="pixel_is_at")
        walking = Signal()

        def line_starts(at: Value) -> list[Any]:
            return [row.eq(at), addr.eq(at), pixel_at.eq(c.pixel_at), pixel.eq(0), held.eq(0)]

        def block_starts(at: Value) -> list[Any]:
            return [plane.eq(at), line_at.eq(c.line_at), line.eq(0), repeated.eq(0), *line_starts(at)]

        with m.If(self.start):
            m.d.sync += [walking.eq(1), block.eq(0), *block_starts(c.base)]
        with m.Elif(walking & self.o.ready):
            with m.If(pixel != c.pixels - 1):
                m.d.sync += [pixel.eq(pixel + 1), held.eq(held + 1)]
                with m.If(held == c.pixel_repeat - 1):
                    m.d.sync += [held.eq(0), addr.eq(addr + c.step), pixel_at.eq(pixel_at + c.pixel_stride)]
            with m.Elif(line != c.lines - 1):
                m.d.sync += [line.eq(line + 1), repeated.eq(repeated + 1), *line_starts(row)]
                with m.If(repeated == c.line_repeat - 1):
                    m.d.sync += [repeated.eq(0), line_at.eq(line_at + c.line_stride), *line_starts(row + c.line)]
            with m.Elif(block != c.blocks - 1):
                m.d.sync += [block.eq(block + 1), *block_starts(plane + c.plane)]
            with m.Else():
                m.d.sync += walking.eq(0)
        m.d.comb += Assert((self.o.valid == walking) & (self.active == walking))
        with m.If(walking):
            m.d.comb += [
                Assert((word.addr == addr) & (word.line_at == line_at) & (word.pixel_at == pixel_at)),
                Assert((word.first == (pixel == 0)) & (word.window_full == (pixel >= c.prefill))),
                # What induction has to know.
                Assert((block < c.blocks) & (line < c.lines) & (pixel < c.pixels)),
                Assert((repeated < c.line_repeat) & (held < c.pixel_repeat)),
                Assert(counter_holds(self._blocks, c.blocks - block)),
                Assert(counter_holds(self._lines, c.lines - line)),
                Assert(counter_holds(self._pixels, c.pixels - pixel)),
                Assert(counter_holds(self._line_repeats, c.line_repeat - repeated)),
                Assert(counter_holds(self._pixel_repeats, c.pixel_repeat - held)),
                Assert((self._plane_addr == plane) & (self._line_addr == row)),
                Assert(self._prefill == Mux(pixel >= c.prefill, 0, c.prefill - pixel)),
            ]
        return m


class CheckedWindow(WindowWalker):
    """The words of a window of the vector unit; its lines and pixels are free."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        c, word = self.config, self.o.payload
        m.d.comb += [Value.cast(c).eq(AnyConst(WINDOW_LAYOUT.size)), Assume((c.lines != 0) & (c.pixels != 0))]
        line, column = Signal.like(c.lines, name="lines_done"), Signal.like(c.pixels, name="pixels_done")
        pixel, walking = Signal.like(self.i.payload, name="opened"), Signal()
        row, addr = Signal(SCRATCH_BITS, name="row_addr"), Signal(SCRATCH_BITS, name="word_addr")
        at = [Signal.like(pixel.line_at, name=f"at{axis}") for axis in range(2)]
        line_ends, new = column == c.pixels - 1, self.i.payload
        closes = (line == c.lines - 1) & line_ends
        with m.If(~walking | (self.o.ready & closes)):
            m.d.sync += [walking.eq(self.i.valid), pixel.eq(new), line.eq(0), column.eq(0)]
            m.d.sync += [row.eq(new.addr), addr.eq(new.addr), at[0].eq(new.line_at), at[1].eq(new.pixel_at)]
        with m.Elif(self.o.ready & line_ends):
            m.d.sync += [line.eq(line + 1), column.eq(0), row.eq(row + c.line), addr.eq(row + c.line)]
            m.d.sync += [at[0].eq(at[0] + 1), at[1].eq(pixel.pixel_at)]
        with m.Elif(self.o.ready):
            m.d.sync += [column.eq(column + 1), addr.eq(addr + 1), at[1].eq(at[1] + 1)]
        fits = [(value >= 0) & (value < limit) for value, limit in zip(at, (c.line_limit, c.pixel_limit), strict=True)]
        first = (line == 0) & (column == 0)
        m.d.comb += Assert(self.o.valid == walking)
        m.d.comb += Assert(self.i.ready == (~walking | (self.o.ready & closes)))
        with m.If(walking):
            m.d.comb += [
                Assert(word.addr == addr),
                Assert(word.inside == (~c.bounded | (fits[0] & fits[1]))),
                Assert(word.tap.first == (first & (pixel.first | ~c.slide))),
                Assert(word.tap.last == (closes & pixel.window_full)),
                # What induction has to know.
                Assert((line < c.lines) & (column < c.pixels) & (self._first == first)),
                Assert(counter_holds(self._lines, c.lines - line)),
                Assert(counter_holds(self._pixels, c.pixels - column)),
                Assert((self._line_at == at[0]) & (self._pixel_at == at[1]) & (self._line_addr == row)),
                Assert(Value.cast(self._pixel) == Value.cast(pixel)),
            ]
        return m


class CheckedRuns(RunWalker):
    """Runs of LOAD and STORE on both sides, beside nested loops that add up addresses; all counts are free."""

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        job = Signal(move_layout(self._params), name="job")
        plane, row = Signal.like(job.n2, name="planes_done"), Signal.like(job.n1, name="rows_done")
        far, far_plane, end = (Signal.like(job.dram, name=f"far_{name}") for name in ("run", "plane", "end"))
        near, near_plane = (Signal.like(job.local, name=f"near_{name}") for name in ("run", "plane"))
        walking, new = Signal(), self.i.payload
        m.d.comb += Assume((new.n0 != 0) & (new.n1 != 0) & (new.n2 != 0))
        next_far, next_near = Signal.like(far), Signal.like(near)
        m.d.comb += [next_far.eq(far_plane + job.dram_s2), next_near.eq(near_plane + job.local_s2)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [job.eq(new), plane.eq(0), row.eq(0), walking.eq(1)]
            m.d.sync += [far.eq(new.dram), far_plane.eq(new.dram), near.eq(new.local), near_plane.eq(new.local)]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += end.eq(far + job.n0)
            with m.If(row != job.n1 - 1):
                m.d.sync += [row.eq(row + 1), far.eq(far + job.dram_s1), near.eq(near + job.local_s1)]
            with m.Elif(plane != job.n2 - 1):
                m.d.sync += [row.eq(0), plane.eq(plane + 1)]
                m.d.sync += [far.eq(next_far), far_plane.eq(next_far), near.eq(next_near), near_plane.eq(next_near)]
            with m.Else():
                m.d.sync += walking.eq(0)
        joins, ends = Signal(), Signal()
        m.d.comb += [
            joins.eq(((plane != 0) | (row != 0)) & (end == far)),
            ends.eq((plane == job.n2 - 1) & (row == job.n1 - 1)),
        ]
        memory, local = self.o.payload.memory, self.o.payload.local
        with m.If(self.o.valid):
            m.d.comb += [
                Assert((memory.offset == far) & (memory.words == job.n0)),
                Assert((memory.contiguous == joins) & (memory.last == ends)),
                Assert((local.addr == near) & (local.words == job.n0) & (local.last == ends)),
                Assert((local.target == job.target) & (local.index == job.index)),
            ]
        state, joined = found["elaborate"]["state"], found["_find_contiguous"]
        fsm, move = m._generated["fsm"], state.move
        same = [name for name, _ in move_layout(self._params) if name not in ("dram", "local")]
        m.d.comb += Assert(fsm.ongoing("TAKE") == ~walking)
        with m.If(walking):
            # What induction has to know.
            m.d.comb += [Assert(move[name] == job[name]) for name in same]
            m.d.comb += Assert((plane < job.n2) & (row < job.n1) & (joined["first"] <= ((plane == 0) & (row == 0))))
            m.d.comb += Assert(counter_holds(state.planes, job.n2 - plane + fsm.ongoing("NEXT_PLANE")))
            ahead = fsm.ongoing("OFFER") | fsm.ongoing("STEP")
            m.d.comb += Assert(state.plane == Mux(ahead, next_far, far_plane))
            m.d.comb += Assert(state.local_plane == Mux(ahead, next_near, near_plane))
            before = (plane != 0) | (row != 0)
            m.d.comb += Assert(fsm.ongoing("OFFER") | ~before | (end == (move.dram + job.n0)[: len(end)]))
            m.d.comb += Assert(fsm.ongoing("START_PLANE") | (joined["rows_contiguous"] == (job.dram_s1 == job.n0)))
        with m.If(fsm.ongoing("START_PLANE") | fsm.ongoing("NEXT_PLANE")):
            m.d.comb += Assert((row == 0) & (far == far_plane) & (near == near_plane))
            m.d.comb += Assert((plane == 0) | ((joined["end"] == end) & state.runs.last & ~joined["first"]))
            m.d.comb += Assert((plane != 0) | (fsm.ongoing("START_PLANE") & joined["first"] & ~joined["contiguous"]))
        with m.If(fsm.ongoing("OFFER")):
            m.d.comb += Assert((move.dram == far) & (move.local == near) & (joined["contiguous"] == joins))
            m.d.comb += Assert(counter_holds(state.runs, job.n1 - row))
        with m.If(fsm.ongoing("STEP")):
            m.d.comb += Assert((far == (move.dram + job.dram_s1)[: len(far)]) & (row != 0) & ~joined["first"])
            m.d.comb += Assert(near == (move.local + job.local_s1)[: len(near)])
            m.d.comb += Assert(counter_holds(state.runs, job.n1 - row + 1))
        return m


class CheckedAddresses(AddressWalker):
    """Words of a run in local memory; its length is free."""

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        run, words = found["elaborate"]["run"], found["elaborate"]["words"]
        job = Signal.like(self.i.payload, name="job")
        done, walking = Signal(len(job.words)), Signal()
        m.d.comb += Assume(self.i.payload.words != 0)
        with m.If(~walking | (self.o.ready & (done == job.words - 1))):
            m.d.sync += [walking.eq(self.i.valid), job.eq(self.i.payload), done.eq(0)]
            m.d.comb += Assert(self.i.ready)
        with m.Else():
            m.d.sync += done.eq(done + self.o.ready)
            m.d.comb += Assert(~self.i.ready)
        word = self.o.payload
        m.d.comb += Assert(self.o.valid == walking)
        with m.If(walking):
            m.d.comb += [
                Assert(word.addr == (job.addr + done)[:SCRATCH_BITS]),
                Assert((word.target == job.target) & (word.index == job.index)),
                Assert(word.last == (job.last & (done == job.words - 1))),
                # What induction has to know.
                Assert((done < job.words) & counter_holds(words, job.words - done)),
                Assert(run.last == job.last),
            ]
        return m


class CheckedOutput(OutputWalker):
    """Blocks, rows, columns and channel groups of a CONV's output and residual, before the skid buffer."""

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        rows, lanes, new, position = self._params.rows, self._params.lanes, self.walk, self._position
        groups = self._params.cols // lanes
        job, walking = Signal(WALK, name="job"), Signal()
        offered, idle = Signal(WALK, name="offered"), Signal(init=1)
        m.d.sync += [offered.eq(new), idle.eq(~walking)]
        block, y, x = (Signal.like(job[name], name=f"{name}_done") for name in ("blocks", "out_h", "out_w"))
        group = Signal(range(groups), name="groups_done")
        plane, block_plane, row, pixel = (
            Signal(SCRATCH_BITS, name=f"{n}_addr") for n in ("plane", "block", "row", "x")
        )
        byte, block_byte = Signal(range(rows), name="is_byte"), Signal(range(rows), name="block_byte")
        pixel_ends = group == groups - 1
        row_ends = pixel_ends & (x == job.out_w - 1)
        block_ends = row_ends & (y == job.out_h - 1)
        last = block_ends & (block == job.blocks - 1)
        # The next group of channels: in this word, or in that of the next plane.
        beyond = byte + lanes >= rows
        next_plane, next_byte = Signal.like(plane), Signal.like(byte)
        m.d.comb += [
            Assume((new.blocks != 0) & (new.out_h != 0) & (new.out_w != 0) & ~(self.start & self.active)),
            Assume((new.byte % lanes == 0) & (new.byte < rows)),
            Assume(~self.start | (Value.cast(new) == Value.cast(offered))),
            next_plane.eq(plane + Mux(beyond, job.plane, 0)),
            next_byte.eq(byte + lanes - Mux(beyond, rows, 0)),
        ]
        with m.If(self.start):
            m.d.sync += [job.eq(new), walking.eq(1), *(index.eq(0) for index in (block, y, x, group, row, pixel))]
            m.d.sync += [plane.eq(new.base), block_plane.eq(new.base), byte.eq(new.byte), block_byte.eq(new.byte)]
        with m.Elif(self._step):
            m.d.sync += [walking.eq(~last), group.eq(Mux(pixel_ends, 0, group + 1))]
            m.d.sync += [plane.eq(next_plane), byte.eq(next_byte)]
            with m.If(block_ends):
                m.d.sync += [block.eq(block + 1), y.eq(0), x.eq(0), row.eq(0), pixel.eq(0)]
                m.d.sync += [block_plane.eq(next_plane), block_byte.eq(next_byte)]
            with m.Elif(pixel_ends):
                m.d.sync += [plane.eq(block_plane), byte.eq(block_byte), x.eq(x + 1), pixel.eq(pixel + job.x)]
                with m.If(row_ends):
                    m.d.sync += [y.eq(y + 1), x.eq(0), row.eq(row + job.row), pixel.eq(row + job.row)]
        walker, channels, pixels = found["elaborate"], found["_channels"], found["_pixels"]
        counted = found["_count"]
        m.d.comb += Assert((walker["walking"] == walking) & (walking | ~self._step))
        m.d.comb += Assert(walking | idle | self.active)
        with m.If(idle & ~walking):
            m.d.comb += [
                Assert(Value.cast(walker["walk"]) == Value.cast(offered)),
                Assert((position.group == 0) & (pixels["pixel"] == 0) & (pixels["row"] == 0)),
                Assert((channels["first_plane"] == offered.base) & (channels["first_byte"] == offered.byte)),
                Assert(counter_holds(counted["blocks"], offered.blocks)),
            ]
        with m.If(walking):
            m.d.comb += [
                Assert(position.address == (plane + pixel)[:SCRATCH_BITS]),
                Assert((position.byte == byte) & (position.group == group)),
                Assert((position.pixel_end == pixel_ends) & (position.block_end == block_ends)),
                Assert(position.last == last),
                # What induction has to know.
                Assert(Value.cast(walker["walk"]) == Value.cast(job)),
                Assert((byte % lanes == 0) & (block_byte % lanes == 0) & (group < groups)),
                Assert((x < job.out_w) & (y < job.out_h) & (block < job.blocks)),
                Assert(counter_holds(counted["columns"], job.out_w - x)),
                Assert(counter_holds(counted["rows"], job.out_h - y)),
                Assert(counter_holds(counted["blocks"], job.blocks - block)),
                Assert((channels["plane"] == plane) & (channels["first_plane"] == block_plane)),
                Assert((channels["first_byte"] == block_byte) & (pixels["pixel"] == pixel) & (pixels["row"] == row)),
            ]
        return m


WALKERS: dict[str, tuple[type[wiring.Component], type[wiring.Component], tuple[HardwareParams, ...]]] = {
    "raster": (CheckedRaster, RasterWalker, ()),
    "window": (CheckedWindow, WindowWalker, ()),
    "runs": (CheckedRuns, RunWalker, (NANO,)),
    "addresses": (CheckedAddresses, AddressWalker, (NANO,)),
    "output": (CheckedOutput, OutputWalker, (NARROW_LANES,)),
}


def holds(name: str, folder: Path, *changes: tuple[str, str]) -> bool:
    """Whether a walker follows its reference; `changes` plant a fault."""
    checked, walker, arguments = WALKERS[name]
    component = rebased(checked, planted(walker, *changes)) if changes else checked
    dut = component(*arguments)
    bench = FreeBench(dut, "config", streams=("i",) if hasattr(dut, "i") else ())
    return prove(bench, folder, depth=2, induction=True, whole=True).holds


@pytest.mark.parametrize("name", WALKERS)
def test_a_walker_follows_its_loops(name: str, tmp_path: Path) -> None:
    assert holds(name, tmp_path)


_FAULTS = {
    "raster: step of the plane": ("Mux(block_ends, self._plane_addr", "Mux(block_ends, word.addr"),
    "raster: narrow address": ("origin + distance", "(origin + distance)[:19]"),
    "window: negative coordinates": ("self._pixel_at.as_unsigned() < self", "self._pixel_at < self"),
    "runs: joined planes": ("Mux(state.runs.last, state.plane == end, rows_contiguous)", "rows_contiguous"),
    "addresses: narrow": ("run.addr.eq(run.addr + 1)", "run.addr.eq((run.addr + 1)[:16])"),
    "output: first byte": ("first_byte.eq(next_byte)", "first_byte.eq(0)"),
    "output: next plane": ("with m.If(byte == rows - lanes):", "with m.If(byte == rows):"),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_faulty_walker_is_refuted(fault: str, tmp_path: Path) -> None:
    assert not holds(fault.split(":", maxsplit=1)[0], tmp_path, _FAULTS[fault])
