"""The register map behind the AXI4-Lite port.

The RTL bank, C header, SystemRDL, manual and bench accessors derive from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.isa import ISA_VERSION, QUEUED_UNITS, Unit
from intloom.hw.spec.params import HardwareParams, from_dict

MAGIC = 0x4D4F4F4C
"""`LOOM` in ASCII, lowest byte first."""
VERSION = 1
REGISTER_BYTES = 4
ADDRESS_BITS = 10


class Access(StrEnum):
    """How software may use a register or field."""

    RO = "ro"
    RW = "rw"
    W1C = "w1c"
    """Reads the flag; writing 1 clears it."""
    WO = "wo"
    """A pulse: writing 1 acts, reads give 0."""


class Cause(IntEnum):
    """Why the accelerator stopped with an error."""

    NONE = 0
    """It did not."""
    BAD_OPCODE = 1
    """An instruction whose opcode is not in the table."""
    BAD_FIELD = 2
    """A field outside its limits, bits set past the last field, or an option this hardware was built without."""
    WRONG_PROGRAM = 3
    """The program is for another instruction set version or other hardware parameters, or does not start with BEGIN."""
    SCRATCH_RANGE = 4
    """An access past the end of the scratchpad."""
    READ_SLVERR = 5
    """The memory answered a load with SLVERR."""
    READ_DECERR = 6
    """No memory at the address of a load (DECERR)."""
    WRITE_SLVERR = 7
    """The memory answered a store with SLVERR."""
    WRITE_DECERR = 8
    """No memory at the address of a store (DECERR)."""
    WATCHDOG = 9
    """No instruction finished and no bus beat passed for as many cycles as register WATCHDOG says."""
    NO_END = 10
    """The program's last instruction is not END."""
    FETCH_ERROR = 11
    """Reading the program itself met an error on the bus."""


class Stall(IntEnum):
    """Why a unit with work to do did nothing in a cycle; each has a counter in every unit."""

    NO_INSTRUCTION = 0
    """Its queue was empty."""
    WAIT = 1
    """The instruction waits for another unit."""
    MEMORY = 2
    """A scratchpad bank or the AXI bus was taken, or data had not come."""
    WEIGHTS = 3
    """MAC only: the next weight tile was not ready."""
    DRAIN = 4
    """MAC only: both accumulator banks were in use."""


@dataclass(frozen=True)
class BitField:
    """A field of a register."""

    name: str
    lsb: int
    width: int
    doc: str


@dataclass(frozen=True)
class Register:
    """One 32-bit register."""

    name: str
    offset: int
    access: Access
    doc: str
    fields: tuple[BitField, ...] = ()
    reset: int = 0


_FLAG_FIELDS = (
    BitField("done", 0, 1, "The program ended."),
    BitField("error", 1, 1, "The accelerator stopped with an error."),
)

_CONTROL = (
    Register("MAGIC", 0x000, Access.RO, "Always `LOOM`.", reset=MAGIC),
    Register(
        "VERSION",
        0x004,
        Access.RO,
        "Register map version (low half) and instruction set version (high half).",
        reset=VERSION | ISA_VERSION << 16,
    ),
    Register("FINGERPRINT", 0x008, Access.RO, "Fingerprint of the hardware parameters."),
    Register(
        "CONTROL",
        0x010,
        Access.WO,
        "Commands.",
        (
            BitField("start", 0, 1, "Run the program; ignored while busy or in error."),
            BitField("reset", 1, 1, "Stop, drain the bus, clear all state but the registers below."),
        ),
    ),
    Register(
        "STATUS",
        0x014,
        Access.RO,
        "State.",
        (
            BitField("busy", 0, 1, "A program runs or a reset is under way."),
            *(BitField(f.name, f.lsb + 1, 1, f.doc) for f in _FLAG_FIELDS),
            BitField("cause", 8, 4, "Why it stopped; see the causes."),
            BitField("unit", 12, 3, "The unit that stopped."),
        ),
    ),
    Register("ERROR_INDEX", 0x018, Access.RO, "Number, counted from 0, of the instruction that stopped."),
    Register("IRQ_ENABLE", 0x01C, Access.RW, "Which flags raise the interrupt line.", _FLAG_FIELDS),
    Register("IRQ_STATUS", 0x020, Access.W1C, "Flags since last cleared.", _FLAG_FIELDS),
    Register("PROGRAM", 0x024, Access.RW, "First word of the program, counted from the memory base."),
    Register("LENGTH", 0x028, Access.RW, "Instructions in the program."),
    Register("BASE_LOW", 0x02C, Access.RW, "Memory base, a byte address; its bits below the word size read as 0."),
    Register("BASE_HIGH", 0x030, Access.RW, "Memory base, upper half."),
    Register(
        "WATCHDOG",
        0x034,
        Access.RW,
        "Cycles without a finished instruction or bus beat after which a program stops with an error; 0: never.",
        reset=1 << 20,
    ),
)

_FIRST_CAPABILITY = 0x080
_FIRST_COUNTER = 0x100
ROUNDING_CODES: Mapping[RoundingMode, int] = MappingProxyType({RoundingMode.ORT: 0, RoundingMode.EXACT: 1})


def capability_names() -> tuple[str, ...]:
    """Names of the capability registers: one for every hardware parameter, in the parameters' own order."""
    return tuple(f"CAP_{f.name.upper()}" for f in dataclasses.fields(HardwareParams))


def capability_values(params: HardwareParams) -> tuple[int, ...]:
    """What the capability registers read: numbers as they are, truth as 0 and 1, the match mode by its code."""
    return tuple(ROUNDING_CODES[RoundingMode(v)] if isinstance(v, str) else int(v) for v in params.to_dict().values())


def params_from_capabilities(values: Sequence[int]) -> HardwareParams:
    """The hardware parameters that the capability registers, read in order, stand for; the inverse of the above."""
    fields = dataclasses.fields(HardwareParams)
    if len(values) != len(fields):
        raise EncodingError(f"capability registers must be {len(fields)} values, not {len(values)}")
    matches = {code: match for match, code in ROUNDING_CODES.items()}
    plain: dict[str, int | str | bool] = {}
    for f, value in zip(fields, values, strict=True):
        if f.name == "match":
            plain[f.name] = matches.get(value, f"code {value}")
        else:
            plain[f.name] = bool(value) if f.type == "bool" else value
    return from_dict(plain)


def _counters() -> tuple[Register, ...]:
    names: list[tuple[str, str]] = [
        ("CYCLES", "Cycles from start to done or error."),
        ("READ_BEATS", "Words read over AXI, instructions included."),
        ("WRITE_BEATS", "Words written over AXI."),
    ]
    for unit in QUEUED_UNITS:
        names.append((f"{unit.name}_BUSY", f"Cycles in which the {unit.name} unit moved or computed a word."))
        names += [
            (f"{unit.name}_STALL_{s.name}", f"Cycles in which the {unit.name} unit stalled: {s.name}.") for s in Stall
        ]
        names.append((f"{unit.name}_DONE", f"Instructions the {unit.name} unit has finished; what waits look at."))
    return tuple(Register(name, _FIRST_COUNTER + 4 * i, Access.RO, doc) for i, (name, doc) in enumerate(names))


COUNTERS = _counters()
CAPABILITIES = tuple(
    Register(name, _FIRST_CAPABILITY + 4 * i, Access.RO, f"Parameter {f.name}. {f.metadata['doc']}")
    for i, (name, f) in enumerate(zip(capability_names(), dataclasses.fields(HardwareParams), strict=True))
)
REGISTERS: tuple[Register, ...] = (*_CONTROL, *CAPABILITIES, *COUNTERS)
BY_NAME: Mapping[str, Register] = MappingProxyType({r.name: r for r in REGISTERS})


def register(name: str) -> Register:
    """The register called `name`; an unknown name is refused."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise EncodingError(f"register must be one of {', '.join(BY_NAME)}, not {name!r}") from None


def unpack(name: str, value: int) -> dict[str, int]:
    """The fields of a register's value, by name."""
    return {f.name: value >> f.lsb & ((1 << f.width) - 1) for f in register(name).fields}


def pack(name: str, **fields: int) -> int:
    """A register's value from its fields; a value that does not fit is refused."""
    known = {f.name: f for f in register(name).fields}
    word = 0
    for key, value in fields.items():
        if key not in known:
            raise EncodingError(f"{name} has no field {key!r}: it has {', '.join(known)}")
        if not 0 <= value < 1 << known[key].width:
            raise EncodingError(f"{name}.{key} must be from 0 to {(1 << known[key].width) - 1}, not {value}")
        word |= value << known[key].lsb
    return word


def stall_counter(unit: Unit, stall: Stall) -> str:
    """Name of the register that counts this stall of this unit."""
    return f"{unit.name}_STALL_{stall.name}"
