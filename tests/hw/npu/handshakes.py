"""Handshakes of the four units, as stalls.h reads them to attribute every cycle to a counter."""

from intloom.hw.mac.issue.tile_planner import TilePlanner
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Stall, register, stall_counter
from tests.hw.npu.coincidences import RUN_CONTROL

_SEQUENCER = "engine.mac.sequencer"
_MEMBERS = {
    "running": f"{RUN_CONTROL}.running",
    "array_free": f"{_SEQUENCER}.plans__ready",
    "plan_offered": f"{_SEQUENCER}.plans__valid",
    "weights_ready": f"{_SEQUENCER}.weights_ready",
    "weights_taken": f"{_SEQUENCER}.weights_taken",
    "tile_first": f"{_SEQUENCER}.first_tile",
    "tile_continues": f"{_SEQUENCER}.continued",
    "tile_pixels": f"{_SEQUENCER}.strip_length",
    "bank_released": f"{_SEQUENCER}.bank_released",
    "readout_offered": "engine.mac.decoder.readout__valid",
}


def _words(unit: Unit) -> str:
    """When a unit processes a word."""
    fetched = [f"engine.vec.fetch_{at}.words.o__valid & engine.vec.fetch_{at}.words.o__ready" for at in "ab"]
    return {
        Unit.LOAD: "engine.load.scratch__valid & engine.load.scratch__ready | engine.load.weights__valid",
        Unit.MAC: f"{_SEQUENCER}.pixel_valid",
        Unit.VEC: " | ".join(("engine.vec.slicer.words_valid", "engine.out__valid & engine.out__ready", *fetched)),
        Unit.STORE: "engine.store.w__valid & engine.store.w__ready",
    }[unit]


def _elements() -> dict[str, str]:
    """Every scalar and element of the bench's handshakes, with what it is in the RTL."""
    found = dict(_MEMBERS)
    for unit in QUEUED_UNITS:
        found |= {
            f"{name}[{unit:d}]": f"engine.{unit.name.lower()}.unit__{name}" for name in ("valid", "ready", "done")
        }
        found[f"committed[{unit:d}]"] = f"engine.queues.write__commit & engine.queues.write__unit == {unit:d}"
        found[f"word[{unit:d}]"] = _words(unit)
    return found


def signals() -> dict[str, str]:
    """By the name of their probe."""
    return {f"handshake_{number}": signal for number, signal in enumerate(_elements().values())}


def _counters(unit: Unit) -> str:
    """Offsets of the unit's counters of cycles, in the order of stalls.h."""
    names = (f"{unit.name}_BUSY", *(stall_counter(unit, stall) for stall in Stall))
    return f"{{{', '.join(str(register(name).offset) for name in names)}}}"


def header() -> str:
    """Where the bench finds handshakes and counters."""
    elements = _elements()
    arrays = dict.fromkeys(name.partition("[")[0] for name in elements if "[" in name)
    members = ", ".join((*_MEMBERS, *(f"{name}[{len(QUEUED_UNITS)}]" for name in arrays)))
    probes = zip(elements, signals(), strict=True)
    reads = "\n".join(f"    values.{name} = top.probe_{probe};" for name, probe in probes)
    return f"""\
constexpr unsigned BENCH_UNITS = {len(QUEUED_UNITS)}, BENCH_MAC = {Unit.MAC:d}, BENCH_STORE = {Unit.STORE:d};
constexpr unsigned BENCH_PLANNER = {TilePlanner.LATENCY};
constexpr unsigned BENCH_COUNTERS[][{1 + len(Stall)}] = {{{", ".join(map(_counters, QUEUED_UNITS))}}};
struct Handshakes {{
    unsigned {members};
}};
inline void read(const Vtop& top, Handshakes& values) {{
{reads}
}}
"""
