"""Events that meet in one cycle, in every state of every FSM: cover points from the RTL.

An event is what stops or interrupts a program. A point is a state of an FSM, or of a unit, in a cycle with one event or
with two. States come from the elaborated RTL, so that a new state has points as soon as it exists.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

from amaranth.hdl import Fragment

from intloom.hw.control.run_control import RunControl
from intloom.hw.engine import Engine
from intloom.hw.mac.array.product import OneModule
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import HardwareParams

EVENTS = (
    "fault",
    "interrupt set",
    "interrupt clear",
    "read error",
    "write error",
    "halt",
    "soft reset",
    "power-on reset",
)
"""In the order of disturbed.cpp."""
RUN_CONTROL = "run_control"
_FLAGS = (
    ("mac.sequencer", "active", "active"),
    ("mac.sequencer", "waits_weights", "waits for weights"),
    ("mac.sequencer", "waits_bank", "waits for a bank"),
    ("vec.sequencer", "_busy", "busy"),
    ("vec.sequencer", "_running", "running"),
    ("vec.sequencer", "stop", "stopped"),
)
"""Instance, signal, and what it says while it is 1."""
_DEPTHWISE_FLAGS = (
    ("vec.walker", "_valid", "walking"),
    ("vec.constants", "weights_loaded", "with weights"),
    ("vec.constants", "loaded", "with constants"),
    ("vec.columns", "sums_valid", "complete a result"),
)


@dataclass(frozen=True)
class Probe:
    """Something with states inside the accelerator."""

    name: str
    signal: str
    """Hierarchical name in module `npu`."""
    states: tuple[str, ...]
    """By value of the signal."""


@cache
def probes(params: HardwareParams) -> tuple[Probe, ...]:
    """Every FSM, and of every unit whether it works."""
    # The renamed domains of a clock gate hide the FSMs below them.
    engine = Fragment.get(Engine(params.replace(clock_gating=False)), OneModule(arrays=True))
    found = [*_fsms(engine, "engine"), *_fsms(Fragment.get(RunControl(), None), RUN_CONTROL)]
    units = [(unit.name.lower(), f"engine.{unit.name.lower()}.unit__idle") for unit in QUEUED_UNITS]
    return (*found, *(Probe(name, signal, ("busy", "idle")) for name, signal in units), *_unit_states(params))


def _unit_states(params: HardwareParams) -> Iterator[Probe]:
    """States of units that have flags and counts instead of FSMs."""
    # Beside VNORM's constants, those of VDEPTHWISE have another name.
    depthwise = _DEPTHWISE_FLAGS * (params.vector_depthwise and not params.vector_norm)
    for path, signal, state in _FLAGS + depthwise:
        yield Probe(f"{path} {state}", f"engine.{path}.{signal}", ("no", "yes"))
    levels = tuple(map(str, range(params.queue_depth + 1)))
    for unit in QUEUED_UNITS:
        yield Probe(f"{unit.name.lower()} queue", f"engine.queues.{unit.name.lower()}_level", levels)


def _fsms(fragment: Fragment, path: str) -> Iterator[Probe]:
    for name, fsm in fragment.generated.items():
        if hasattr(fsm, "encoding"):
            states = sorted(fsm.encoding, key=fsm.encoding.__getitem__)
            yield Probe(path.removeprefix("engine."), f"{path}.{name}_state", tuple(states))
    for inner, name, _ in fragment.subfragments:
        yield from _fsms(inner, f"{path}.{name}")


def point(probe: str, state: str, first: str, second: str) -> str:
    """The name of a cover point; `second` is `first` for a single event."""
    return f"{probe} {state}: {first}" + (f" and {second}" if second != first else "")


def states_with_events(probe: Probe) -> Iterator[tuple[str, str, str]]:
    """Every state with every event and every pair of events."""
    for state in probe.states:
        for first, second in combinations_with_replacement(EVENTS, 2):
            yield state, first, second


@dataclass(frozen=True)
class Exclusion:
    """Points that cannot be reached."""

    events: frozenset[str]
    reason: str
    probe: str = ".*"
    state: str = ".*"

    def covers(self, probe: str, state: str, events: frozenset[str]) -> bool:
        """Whether a point is one of them."""
        names = re.fullmatch(self.probe, probe) is not None and re.fullmatch(self.state, state) is not None
        return names and self.events <= events


def _never(first: str, second: str, reason: str) -> Exclusion:
    return Exclusion(frozenset((first, second)), reason)


def _not_in(event: str, states: str, reason: str) -> Exclusion:
    return Exclusion(frozenset((event,)), reason, RUN_CONTROL, states)


def _never_while_stopped(first: str, second: str, reason: str) -> Exclusion:
    return Exclusion(frozenset((first, second)), reason, "vec.sequencer stopped", "yes")


_NO_TRANSFER = "IDLE|LAUNCH|CLEAR|CLEARED"
EXCLUSIONS = (
    _never("interrupt set", "soft reset", "the reset command suppresses the interrupt"),
    _never("interrupt set", "halt", "interrupts are set in RUN and CLEARED, halt rises in HALTED and DRAIN"),
    _never("interrupt clear", "soft reset", "a write waits while the command before it takes effect"),
    _not_in("soft reset", "LAUNCH", "a write waits while the command to start takes effect"),
    _not_in("interrupt set", "(?!RUN$|CLEARED$).*", "a fault sets it in RUN, the end of a program in CLEARED"),
    _not_in("halt", "(?!HALTED$|DRAIN$).*", "halt rises in the cycle after the first of HALTED or DRAIN"),
    # A tile in progress completes in a halt: its fault may come until the engine's reset, in IDLE's first cycle.
    _not_in("fault", "LAUNCH", "nothing works that could fail"),
    _not_in("fault", "HALTED", "the first fault is latched already"),
    Exclusion(
        frozenset({"fault", "interrupt set"}), "after the end of a program no unit works", RUN_CONTROL, "CLEARED"
    ),
    _not_in("read error", _NO_TRANSFER, "no transfer is in flight"),
    _not_in("write error", _NO_TRANSFER, "no transfer is in flight"),
    # The vector unit stops two cycles after its own fault, one after the latch has it and the run control has left RUN.
    _never_while_stopped("interrupt set", "fault", "not in RUN; in CLEARED no unit works"),
    _never_while_stopped("interrupt set", "read error", "not in RUN; in CLEARED no transfer is in flight"),
    _never_while_stopped("interrupt set", "write error", "not in RUN; in CLEARED no transfer is in flight"),
    _never_while_stopped("halt", "fault", "stopped when halt rises: its own fault is latched already"),
    Exclusion(frozenset({"write error"}), "the unit is not idle before it has all responses", "store", "idle"),
)


def exclusion_of(probe: str, state: str, first: str, second: str) -> Exclusion | None:
    """Why a point cannot be reached; None if it can."""
    events = frozenset((first, second))
    return next((e for e in EXCLUSIONS if e.covers(probe, state, events)), None)


def wanted_points(params: HardwareParams) -> list[str]:
    """Names of all points that can be reached."""
    return [
        point(probe.name, *rest)
        for probe in probes(params)
        for rest in states_with_events(probe)
        if exclusion_of(probe.name, *rest) is None
    ]
