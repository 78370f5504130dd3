"""The programs of the coverage of the RTL, in steps that a later call does not repeat."""

import os
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from intloom.common.errors import SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.hw.spec import timing
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, INSTRUCTION_BYTES, Kind, Unit, encode, make
from intloom.hw.spec.norm import LARGEST_COUNT
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.hw.spec.word_code import UNITS, WIDTH_BITS
from intloom.sim.random_programs.program import NO_LAG, Step, random_program
from intloom.sim.rtl.bare import COVERAGE_VARIABLE
from intloom.sim.rtl.job import Direction, InjectedError, MemorySettings, Response
from tests.hw.coverage.collector import LIMIT, PATIENT, PAUSE, PAUSES, Collector
from tests.hw.coverage.directed import directed_programs
from tests.hw.coverage.fields import cover_points, reached
from tests.hw.coverage.patterns import (
    UNMET,
    end_series,
    field_series,
    index_series,
    long_series,
    outside,
    queued_series,
    transfers,
    wait_series,
)
from tests.hw.npu.coincidences import wanted_points
from tests.hw.npu.disturbed import Design as Disturbed
from tests.hw.npu.disturbed import run
from tests.sim.random_programs import top_bits
from tests.sim.random_programs.extremes import LONG, WIDE, extreme_program
from tests.sim.random_programs.short_runs import DONE, PROGRAM_BYTE, Ending, altered, checked, waits
from tests.support.shapes import SHAPES

_STALLS = (0, 100, 300)
_REGISTER_RUNS = 12
_PARITY_RUNS = 40
"""Programs on unwritten memories."""
_SERIES_OF_A_STEP = 20
_EVENT_RUNS, _EVENT_ROUNDS = 500, 100
"""At most; so many programs are disturbed in a run."""
_LATENCIES = (20, 1000)
_CONSTANTS = ("CONV.subtract_zp_in 1", "CONV.residual 1", "VADD.shift upper half", "VDEPTHWISE.kernel_h smallest")
_INSTRUCTIONS = 60
"""Instructions that reach each of these cover points: every set of constants with both values of its bits."""
_ALTERNATE = 0x5_5555
"""Every second bit of an instruction count."""
_BELOW_CARRY = 0x7FFF_FFFC_0000_1000
"""A memory base to which the largest offset of a word, 2^34 bytes, adds a carry into the highest bit."""
_ALL_WORDS = 0xFFFF_FFFF
"""A limit that no address of a short program exceeds."""


def _faulty_programs(params: HardwareParams) -> Iterator[bytes]:
    """Illegal opcodes, waits that never end, wrong check bits."""
    for kind in (Kind.LOAD, Kind.CONV, Kind.VADD, Kind.STORE):
        yield checked(params, altered(make(kind), "opcode", 7))
        yield checked(params, altered(make(kind), "opcode", 2))
    # Checked by the MAC unit: a lane within a group, and continued sums of more than one strip.
    yield checked(params, altered(make(Kind.CONV), "out_lane", 0))
    yield checked(params, encode(make(Kind.CONV, continue_sums=1, out_h=params.strip, out_w=2)))
    yield checked(params, altered(begin(params), "version", 3))
    yield checked(params)[:-1] + b"\xff"
    yield checked(params, *[encode(make(Kind.VTABLE))] * 3)


def _waiting_programs(params: HardwareParams) -> Iterator[bytes]:
    """Indices, and waits of every unit for every other, with both values of all bits."""
    for number, (name, i) in enumerate(waits()):
        before = [encode(begin(params))] * (700 * (number % 4))
        for wait in (_ALTERNATE, _ALTERNATE << 1):
            yield checked(params, *before, encode(i.with_fields(**{name: wait & (1 << COUNT_BITS) - 1})))


def _address_faults(collector: Collector) -> None:
    """Fields that point past the scratchpad: each ends in its error, which is what their upper half must do."""
    for name, fault in top_bits.faulty():
        found = collector.stop(checked(WIDE, altered(fault.instruction, name, fault.bit)))
        if found != Ending(fault.cause, fault.unit, 1):
            raise SimulationError(f"{fault.instruction.kind}.{name} bit {fault.bit}: {found}")
        collector.seen.update(reached([top_bits.flipped(fault.instruction, name, fault.bit)]))


def _bus_errors(collector: Collector) -> None:
    """Error responses to fetch, load and store, of both kinds, with their causes."""
    params = collector.params
    first = PROGRAM_BYTE // params.word_bytes
    moves = [encode(make(Kind.LOAD, dram=64, n0=40)), encode(make(Kind.STORE, dram=256, n0=40, wait_load=1))]
    cases = [
        (Response.SLVERR, Direction.READ, first, Cause.FETCH_ERROR),
        (Response.DECERR, Direction.READ, first, Cause.FETCH_ERROR),
        (Response.SLVERR, Direction.READ, 70, Cause.READ_SLVERR),
        (Response.DECERR, Direction.READ, 70, Cause.READ_DECERR),
        (Response.SLVERR, Direction.WRITE, 260, Cause.WRITE_SLVERR),
        (Response.DECERR, Direction.WRITE, 260, Cause.WRITE_DECERR),
    ]
    for stalls, (response, direction, word, cause) in product(_STALLS, cases):
        error = InjectedError(word=word, response=response, direction=direction)
        found = collector.stop(checked(params, *moves), memory=MemorySettings(error=error, stall_permille=stalls))
        if found is None or found.cause is not cause:
            raise SimulationError(f"{response.name} to word {word} ends with {found}")


def _register_values(collector: Collector) -> None:
    """Programs anywhere in the address space, with any length and limit that let them end."""
    rng = random.Random(1)
    for number in range(_REGISTER_RUNS):
        base = rng.getrandbits(WIDE.axi_addr_bits - 1 - number % 3 * 16) // 4096 * 4096
        word = rng.getrandbits(32 - number % 2 * 20)
        settings: dict[str, Any] = {
            "memory_base": base,
            "program_word": word,
            "first_byte": base + word * WIDE.word_bytes - PROGRAM_BYTE,
            "instructions": rng.getrandbits(32) | 4,
            "watchdog": rng.getrandbits(32) | 1 << 12,
            "window_words": _ALL_WORDS,
        }
        if settings["first_byte"] >= 0 and collector.stop(checked(WIDE), **settings) != DONE:
            raise SimulationError(f"a program does not end with {settings}")


def _slides(collector: Collector) -> None:
    """Maxima of windows of every length that slides."""
    lengths = range(2, timing.SLIDING_TAPS + 1)
    rows = {"in_w": 12, "in_h": 1, "a_row": 12, "out_w": 8, "kernel_h": 1}
    maxima = [make(Kind.VMAX, **rows, kernel_w=taps, out_base=500 + 20 * taps) for taps in lengths]
    collector.run(random_program(1, collector.params).with_steps([Step(i, NO_LAG) for i in maxima]))


def _extremes(collector: Collector) -> None:
    """Every instruction field at its highest bit."""
    collector.run(extreme_program(WIDE, [i for _, i in top_bits.wide_program()]))


def _faults(collector: Collector) -> None:
    for code in _faulty_programs(collector.params):
        collector.stop(code)


def _unmet_waits(collector: Collector) -> None:
    for code in _waiting_programs(collector.params):
        collector.stop(code)


def _patterns(collector: Collector) -> None:
    """Both values of all bits of all fields."""
    every = [*field_series(collector.params, random.Random(1))]
    for first in range(0, len(every), _SERIES_OF_A_STEP):
        for series in every[first : first + _SERIES_OF_A_STEP] if collector.is_open(f"series {first}") else ():
            collector.follow(series)
        collector.close(f"series {first}")


def _waits(collector: Collector) -> None:
    """Every second bit of all wait counts, then the others."""
    for series in wait_series(collector.params):
        collector.follow(series)


def _end_waits(collector: Collector) -> None:
    """The same for the waits of END."""
    for series in end_series(collector.params):
        collector.follow(series)


def _indices(collector: Collector) -> None:
    """Every second bit of the indices of instructions and faults, then the others."""
    for before in (0x1555, 0x0AAA):
        for series in index_series(collector.params, before):
            collector.follow(series)


def _high_counts(collector: Collector) -> None:
    """The highest bits of indices, and all but the highest of counts of finished instructions."""
    series = long_series(collector.params, UNMET)
    found = collector.follow(series, memory=MemorySettings(read_latency=1, write_latency=1))
    if found is None or (found.cause, found.index) != (Cause.WATCHDOG, len(series[0]) // INSTRUCTION_BYTES - 2):
        raise SimulationError(f"a million instructions end with {found}")


def _odd_host(collector: Collector) -> None:
    """Accesses to the registers that no driver makes."""
    collector.access_oddly()


def _queued_moves(collector: Collector) -> None:
    """Both values of all bits of loads and stores in every entry of small FIFOs."""
    for series in queued_series(collector.params):
        collector.follow(series)


def _unit_faults(collector: Collector) -> None:
    """The same with a limit that lets the last instructions raise their own faults."""
    for before in (0x1555, 0x0AAA):
        for series in index_series(collector.params, before):
            collector.follow(series, watchdog=PATIENT)


def _transfers(collector: Collector) -> None:
    """As many bursts outstanding as the hardware and the memory hold, and every FIFO entry with both lengths."""
    params = collector.params
    behind = (PROGRAM_BYTE + len(transfers(params, 0))) // params.word_bytes
    code = transfers(params, behind)
    for latency, stalls in product(_LATENCIES, _STALLS[:2]):
        memory = MemorySettings(read_latency=latency, write_latency=latency, outstanding=64, stall_permille=stalls)
        found = collector.stop(code, memory=memory, watchdog=PATIENT, limit=LIMIT)
        if found != DONE:
            raise SimulationError(f"transfers with a latency of {latency} cycles end with {found}")


def _shifts(collector: Collector) -> None:
    """Every shift of residual and vector additions."""
    last = BY_KIND[Kind.VADD].field("shift").maximum
    shifts = [make(Kind.VADD, shift=n) for n in range(last + 1)]
    shifts += [make(Kind.CONV, residual=1, res_shift=n) for n in range(last + 1)]
    found = collector.stop(checked(collector.params, *map(encode, shifts)), watchdog=PATIENT, limit=LIMIT)
    if found != DONE:
        raise SimulationError(f"additions with every shift end with {found}")


def _table_in_a_halt(collector: Collector) -> None:
    """A copy leaves the scratchpad while a table is loaded: the words that were read are unpacked, and none follows."""
    copy = make(Kind.VCOPY, a_base=collector.params.scratch_words - 32, a_x=1, out_w=64)
    found = collector.stop(
        checked(collector.params, encode(copy), encode(make(Kind.CONV, table=2))), (PAUSE,) * PAUSES * 2
    )
    if found != Ending(Cause.SCRATCH_RANGE, Unit.VEC, 1):
        raise SimulationError(f"a copy that leaves the scratchpad ends with {found}")


def _broken_code(collector: Collector) -> None:
    """Coded words that are too few, or too many, for the words of a load."""
    for coded, words in ((1, 100), (2, 1)) if collector.params.word_code else ():
        found = collector.stop(checked(collector.params, encode(make(Kind.LOAD, coded=coded, n0=words))))
        if found != Ending(Cause.BAD_FIELD, Unit.LOAD, 1):
            raise SimulationError(f"a load of {words} words from {coded} coded ones ends with {found}")


def _illegal_widths(collector: Collector) -> None:
    """Coded words whose first unit has a width above 8, the smallest and the largest."""
    params = collector.params
    for width in (UNITS + 1, (1 << WIDTH_BITS) - 1) if params.word_code else ():
        behind = (PROGRAM_BYTE + len(checked(params, UNMET))) // params.word_bytes
        code = checked(params, encode(make(Kind.LOAD, coded=2, n0=1, dram=behind)))
        widths = bytes([width << WIDTH_BITS | width] * params.word_bytes * 2)
        found = collector.stop(code + widths, instructions=len(code) // INSTRUCTION_BYTES)
        if found != Ending(Cause.BAD_FIELD, Unit.LOAD, 1):
            raise SimulationError(f"a coded word of {width} units ends with {found}")


def _watchdog_fault(collector: Collector) -> None:
    """A fault of the watchdog: memories with parity put further sources behind it."""
    found = collector.stop(checked(collector.params, UNMET))
    if found != Ending(Cause.WATCHDOG, Unit.LOAD, 1):
        raise SimulationError(f"a wait that is never met ends with {found}")


def _parity_errors(collector: Collector) -> None:
    """All units begin to read at once, words that nothing has written: their parity is random."""
    if not collector.params.memory_parity:
        return
    causes = set()
    for seed in range(_PARITY_RUNS):
        start, *body = random_program(seed, collector.params).instructions()
        behind = (PROGRAM_BYTE + (1 + len(body)) * INSTRUCTION_BYTES) // collector.params.word_bytes
        near = {Kind.LOAD: {"dram": behind, "crc": 0}, Kind.STORE: {"dram": behind}}
        scratch, weights, *moved = (i.with_fields(**near.get(i.kind, {})) for i in body)
        # In every second program only the weight memory is unwritten.
        short = scratch.with_fields(n0=1) if seed % 2 else scratch
        code = (start, short, weights.with_fields(n0=1), *moved)
        found = collector.read_unwritten(add_check(map(encode, code)))
        causes.add(found and found.cause)
    if Cause.SCRATCH_PARITY not in causes:
        raise SimulationError(f"programs on unwritten memories end with {causes}")


def _constants(collector: Collector) -> None:
    """Many zero points times sums of weights, and constants of additions and depthwise convolutions."""
    for name in _CONSTANTS:
        required = BY_KIND[Kind(name.partition(".")[0])].requires
        supported = not required or getattr(collector.params, required)
        for program in directed_programs([name] * _INSTRUCTIONS * supported, collector.params, len(name)):
            collector.run(program)


def _range_faults(collector: Collector) -> None:
    """Accesses past the end of the scratchpad."""
    for i in outside(collector.params):
        found = collector.stop(checked(collector.params, encode(i)))
        if found != Ending(Cause.SCRATCH_RANGE, i.unit, 1):
            raise SimulationError(f"{i} ends with {found}")


def _norms(collector: Collector) -> None:
    """Normalizations of the most channels, with the smallest and largest sums and squares."""
    params = collector.params
    if not params.vector_norm:
        return
    blocks = min(LARGEST_COUNT // params.rows, BY_KIND[Kind.VNORM].field("blocks").maximum)
    limit, output = BY_KIND[Kind.VADD].field("c").maximum, 3 * blocks
    # Two tensors of 127, then two of -128, so that one norm reads both values from the second and the third.
    steps = [
        make(Kind.VADD, c=c, blocks=2 * blocks, out_plane=1, out_base=n * 2 * blocks)
        for n, c in enumerate((limit, -limit))
    ]
    same = {"a_plane": 1, "out_plane": 1, "blocks": blocks, "last_bytes": params.rows, "out_base": output}
    for start, zero_point, center in product((0, 3 * blocks // 2, 2 * blocks), (-128, 0, 127), (0, 1)):
        steps.append(make(Kind.VNORM, a_base=start, zp_in=zero_point, center=center, **same))
    collector.run(random_program(1, params).with_steps([Step(i, NO_LAG) for i in steps]))


def _far_stores(collector: Collector) -> None:
    """Stores on both sides of the address at which a carry changes all upper bits; there is no memory on the other."""
    stores = [encode(make(Kind.STORE, dram=word, n0=4)) for word in (0, (1 << 32) - 64)]
    found = collector.stop(
        checked(WIDE, *stores), memory_base=_BELOW_CARRY, first_byte=_BELOW_CARRY, window_words=_ALL_WORDS
    )
    if found != Ending(Cause.WRITE_DECERR, Unit.STORE, 2):
        raise SimulationError(f"a store where no memory is ends with {found}")


def _events(collector: Collector) -> None:
    """Events in all states, on a simulator of their own: each run aims at what is open."""
    with temporary_folder("coincidences") as folder:
        shape = SHAPES["nano"]
        wanted = wanted_points(shape)
        for seed in range(_EVENT_RUNS):
            still_open = {name for name in wanted if not collector.seen[name]}
            if not still_open:
                break
            if collector.is_open(f"coincidences {seed}"):
                collector.seen.update(run(Disturbed(shape, points=still_open), folder, seed, _EVENT_ROUNDS)[0])
                collector.close(f"coincidences {seed}")


_STEPS = (
    _faults,
    _bus_errors,
    _broken_code,
    _illegal_widths,
    _watchdog_fault,
    _transfers,
    _slides,
    _shifts,
    _table_in_a_halt,
    _parity_errors,
)
_WIDE_STEPS = (
    _unmet_waits,
    _address_faults,
    _register_values,
    _patterns,
    _waits,
    _end_waits,
    _indices,
    _unit_faults,
    _far_stores,
    _extremes,
)
"""For both values of all bits of fields and counts: on the hardware with the widest ones."""
_SHAPE_STEPS = (_constants, _norms, _range_faults)
_NANO_STEPS = (_odd_host, _queued_moves)
"""For what all hardware has, on that which simulates fastest: register accesses, FIFO entries."""


def _directed(collector: Collector) -> None:
    """Programs for the cover points that are open, on hardware with the largest memories, then with long words."""
    for params in (WIDE, LONG):
        still_open = [point for point in cover_points() if not collector.seen[point]]
        for program in directed_programs(still_open, params, 7):
            collector.run(program, _STALLS[1])
            collector.save()


def measure(name: str, output: Path, seeds: range) -> None:
    """Measure one hardware, and keep its counts in the output folder."""
    with temporary_folder("coverage") as runs:
        os.environ[COVERAGE_VARIABLE] = str(runs)
        _run_steps(Collector(name, output, runs), seeds)


def _run_steps(collector: Collector, seeds: range) -> None:
    wide = collector.params == WIDE
    # A program that fills the largest memories takes a minute, and the shapes have the same paths for constants.
    own = _WIDE_STEPS if wide else (*_SHAPE_STEPS, *_NANO_STEPS) if collector.name == "nano" else _SHAPE_STEPS
    for step in (*_STEPS, *own):
        collector.once(step)
    if wide:
        # Not once: a later call continues while points are open.
        _events(collector)
        _directed(collector)
    collector.save()
    for seed in seeds:
        if collector.is_open(f"random {seed}"):
            collector.run(random_program(seed, collector.params), _STALLS[seed % len(_STALLS)])
            collector.close(f"random {seed}")
    if collector.name == "nano":
        # Last: it takes as long as all others. On the hardware with the widest fields it takes half an hour and
        # reaches nothing more.
        collector.once(_high_counts)
