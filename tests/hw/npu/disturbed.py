"""Short programs that are disturbed in every cycle: builds and runs disturbed.cpp.

The simulator is the bare loop, too, so that random programs run on the same builds.
"""

import json
import random
import re
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from intloom.compiler.program.memory import initial_memory
from intloom.compiler.program.program import Program as Network
from intloom.hw.npu import TOP_NAME
from intloom.hw.spec import regs
from intloom.hw.spec.params import HardwareParams
from intloom.sim.isa_sim.simulator import IsaSimulator
from intloom.sim.result import Arrays
from intloom.sim.rtl.backend import limit_of, watchdog_of
from intloom.sim.rtl.bare import bare_plan
from intloom.sim.rtl.bench import prepare
from intloom.sim.rtl.build import Build, build
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.shell import bare_ports
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu import handshakes
from tests.hw.npu.coincidences import EVENTS, RUN_CONTROL, exclusion_of, point, probes, states_with_events
from tests.hw.npu.short_programs import Program, random_short_program

_BASE = 0x4000_0000
_CYCLES = 1000
"""Longer than a program without stalls."""
_STALLS = 800
"""Of a channel, in a thousand cycles, at most."""
_HEADER = """\
#pragma once
#include "Vtop.h"
{constants}
namespace probes {{
constexpr int COUNT = {count};
inline unsigned run_control(const Vtop& top) {{ return top.probe_{run_control}; }}
{functions}
inline void read(const Vtop& top, unsigned* values) {{
{reads}
}}
{handshakes}
}}  // namespace probes
"""
_SIGNALS = {name: f"{RUN_CONTROL}.{name}" for name in ("busy", "halt", "done_event", "error_event")}
_SIGNALS["fault"] = "engine.faults.latched__valid"
"""What the bench reads besides the states."""


@dataclass(frozen=True)
class Design:
    """What is disturbed."""

    params: HardwareParams
    change: Callable[[str], str] = str
    """Of the Verilog with its probes."""
    points: Container[str] | None = None
    """Points that the bench aims at, until it has reached them; None: all."""


def _header(params: HardwareParams) -> str:
    """Positions of registers and the probes as the bench reads them."""
    names = [probe.name for probe in probes(params)]
    state = probes(params)[names.index(RUN_CONTROL)].states.index
    offsets = ("CONTROL", "IRQ_STATUS", "IRQ_ENABLE", "PROGRAM", "LENGTH", "BASE_LOW", "LIMIT", "WATCHDOG")
    values = {f"BENCH_{name}": regs.register(name).offset for name in offsets} | {
        "BENCH_BASE": _BASE,
        "BENCH_WORD": params.word_bytes,
        "BENCH_BEAT": params.beat_bytes,
        "BENCH_PORT": params.port_bytes,
        "BENCH_CYCLES": _CYCLES,
        "BENCH_STALLS": _STALLS,
        "BENCH_START": regs.pack("CONTROL", start=1),
        "BENCH_RESET": regs.pack("CONTROL", reset=1),
        "BENCH_DONE": regs.pack("IRQ_STATUS", done=1),
        "BENCH_ERROR": regs.pack("IRQ_STATUS", error=1),
        "BENCH_IDLE": state("IDLE"),
        "BENCH_HALTED": state("HALTED"),
    }
    return _HEADER.format(
        constants="\n".join(f"constexpr unsigned {name} = {value};" for name, value in values.items()),
        handshakes=handshakes.header(),
        count=len(names),
        run_control=names.index(RUN_CONTROL),
        functions="\n".join(f"inline bool {n}(const Vtop& top) {{ return top.probe_{n}; }}" for n in _SIGNALS),
        reads="\n".join(f"    values[{n}] = top.probe_{n};" for n in range(len(names))),
    )


def probed(params: HardwareParams) -> str:
    """The Verilog with an output for every probe."""
    verilog = verilog_of(params)
    signals = {str(number): probe.signal for number, probe in enumerate(probes(params))}
    signals |= _SIGNALS | handshakes.signals()
    names = "".join(f"probe_{name}, " for name in signals)
    lines = [f"  output [7:0] probe_{name};\n  assign probe_{name} = {path};" for name, path in signals.items()]
    head = re.search(rf"^module {TOP_NAME}\(([^;]*)\);\n", verilog, re.MULTILINE)
    assert head is not None
    module = f"module {TOP_NAME}({names}{head[1]});\n" + "\n".join(lines) + "\n"
    return verilog[: head.start()] + module + verilog[head.end() :]


@cache
def simulator(params: HardwareParams, change: Callable[[str], str] = str) -> Build:
    """The bench, which is a bare loop, too; registers and memories have random contents before the reset.

    The Verilog without a change logs writes.
    """
    source, *headers = (Path(__file__).with_name(name) for name in ("disturbed.cpp", "disturbed.h", "stalls.h"))
    plan = bare_plan(change(probed(params)), optimize="-O1", random_start=True, taps=change is str)
    generated = {
        **plan.generated,
        "ports.h": bare_ports(verilog_of(params)),
        "probes.h": _header(params),
        **{path.name: path.read_text() for path in (source, *headers)},
    }
    return build(replace(plan, name="disturbed", generated=generated, cpp=(source.name,)))


def _write_stimuli(path: Path, wanted: list[tuple[int, int, int, int]], programs: list[Program]) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("<I", len(wanted)) + b"".join(struct.pack("<4I", *numbers) for numbers in wanted))
        file.write(struct.pack("<I", len(programs)))
        for p in programs:
            numbers = p.first_word, p.instructions, bool(p.after), p.cycles, p.watchdog, len(p.before)
            file.write(struct.pack("<6I", *numbers) + p.before + p.after.ljust(len(p.before), b"\0"))


def _numbers(params: HardwareParams, points: Container[str] | None) -> Iterator[tuple[int, int, int, int]]:
    """Wanted points as the bench counts them."""
    for number, probe in enumerate(probes(params)):
        for state, first, second in states_with_events(probe):
            wanted = exclusion_of(probe.name, state, first, second) is None
            if wanted and (points is None or point(probe.name, state, first, second) in points):
                yield number, probe.states.index(state), EVENTS.index(first), EVENTS.index(second)


def start(seed: int) -> str:
    """The simulator's argument with the seed of all contents before the reset."""
    return f"+verilator+seed+{seed}"


_RANDOM, _ZEROS = "+verilator+rand+reset+2", "+verilator+rand+reset+0"
"""Contents of registers and memories before the reset."""


def _simulate(design: Design, folder: Path, seed: int, rounds: int, programs: list[Program], *plusargs: str) -> str:
    """What the bench prints of these programs; without rounds each of them runs once, undisturbed."""
    path, params, files = folder / "stimuli", design.params, RunFiles(folder)
    _write_stimuli(path, [*_numbers(params, design.points)], programs)
    files.memory.write_bytes(programs[0].before)
    # The log of writes is off: a disturbed program's writes are not compared.
    words = len(programs[0].before) // params.word_bytes
    prepare(Job(word_bytes=params.word_bytes, memory_words=words, program_word=0, instructions=0, limit=0), files)
    command = [str(simulator(params, design.change).binary), "disturbed", str(files.job), str(path), str(seed)]
    command += [str(rounds), *plusargs]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}{done.stdout[-500:]}"
    return done.stdout


def run(design: Design, folder: Path, seed: int, rounds: int, *plusargs: str) -> tuple[Counter[str], int]:
    """Run the bench; how often each point was reached, and a digest of all outputs while they are valid.

    `start(n)` among the arguments gives other contents of registers and memories before the reset.
    """
    rng, params = random.Random(seed), design.params
    programs = [random_short_program(rng, params, kind) for kind in (0, 0, 1, 1, 2, 2, 2, 3, 4, 5, 6) * 3]
    # Clock gates print lines of their own at the end.
    digest, table, *_ = _simulate(
        design, folder, seed, rounds, programs, _RANDOM, *(plusargs or (start(1),))
    ).splitlines()
    counts: Counter[str] = Counter()
    for number, value, first, second, count in json.loads(table):
        probe = probes(params)[number]
        counts[point(probe.name, probe.states[value], EVENTS[first], EVENTS[second])] += count
    return counts, int(digest)


def run_network(design: Design, folder: Path, seed: int, network: Network, inputs: Arrays) -> None:
    """A whole network with random stalls: its memory and its counters are compared at the end.

    Memories begin as zeros, as in the instruction simulator: stores take lanes along that no channel uses.
    """
    reference = IsaSimulator(network)
    reference.run(inputs)
    options = RtlOptions(memory=MemorySettings(stall_permille=_STALLS))
    program = Program(
        network.instructions_at,
        len(network.instructions),
        initial_memory(network, inputs).tobytes(),
        reference.machine.dram.tobytes(),
        limit_of(network, options),
        watchdog_of(network, options),
    )
    _simulate(design, folder, seed, 0, [program], _ZEROS)
