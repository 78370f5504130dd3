"""The register map of the AXI4-Lite port.

The RTL register bank, the C header, SystemRDL, the manual and the host drivers derive from it.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.isa import ISA_VERSION, QUEUED_UNITS, Unit
from intloom.hw.spec.params import HardwareParams

MAGIC = 0x4D4F4F4C
"""`LOOM` in ASCII, lowest byte first."""
VERSION = 3
REGISTER_BYTES = 4
ADDRESS_BITS = 10


class Access(StrEnum):
    """Software access to a register or field."""

    RO = "ro"
    RW = "rw"
    W1C = "w1c"
    """Reads return the flag; writing 1 clears it."""
    W1S = "w1s"
    """Reads return the flag; writing 1 sets it; only the reset input clears it."""
    WO = "wo"
    """Writing 1 gives a pulse; reads return 0."""


class Cause(IntEnum):
    """Cause of an error."""

    NONE = 0
    """No error."""
    BAD_OPCODE = 1
    """Unknown opcode."""
    BAD_FIELD = 2
    """A field out of range, a bit above the last field, what the hardware does not implement, or broken coded words."""
    WRONG_PROGRAM = 3
    """No BEGIN at the start, or a program for another instruction set version or other parameters."""
    SCRATCH_RANGE = 4
    """An access past the end of the scratchpad."""
    READ_SLVERR = 5
    """SLVERR response to a load."""
    READ_DECERR = 6
    """DECERR response to a load: no memory at its address."""
    WRITE_SLVERR = 7
    """SLVERR response to a store."""
    WRITE_DECERR = 8
    """DECERR response to a store: no memory at its address."""
    WATCHDOG = 9
    """No instruction finished and no bus beat was transferred for the number of cycles in register WATCHDOG."""
    NO_END = 10
    """The program's last instruction is not END."""
    FETCH_ERROR = 11
    """Bus error during instruction fetch."""
    PROGRAM_CHECK = 12
    """The program check found changed bits: memory or bus altered the program, or PROGRAM points elsewhere."""
    SCRATCH_PARITY = 13
    """A byte that was read from the scratchpad does not match its parity bit. ERROR_INDEX has the word's address."""
    WEIGHT_PARITY = 14
    """A word that was read from the weight memory does not match its parity bit. ERROR_INDEX has the word's address."""
    OUTSIDE_WINDOW = 15
    """The program, a load or a store addresses memory outside the window of BASE and LIMIT. Nothing reaches the bus."""
    CONSTANT_CHECK = 16
    """The words of a load do not match its CRC: memory or bus altered constants. ERROR_INDEX has the load's index."""


class Stall(IntEnum):
    """Why a unit did not process a word in a cycle; every unit has one counter for each."""

    NO_INSTRUCTION = 0
    """The instruction queue was empty."""
    WAIT = 1
    """The instruction's wait counts were not reached."""
    MEMORY = 2
    """No grant by the scratchpad or the AXI bus, or no read data yet."""
    WEIGHTS = 3
    """MAC only: the next weight tile was not ready: weights not loaded, or loops and positions not computed."""
    ACCUMULATORS = 4
    """MAC only: both accumulator banks, or the readout of an earlier instruction, were in use."""


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
    lockable: bool = False
    """LOCK.window makes it read-only."""


_FLAG_FIELDS = (
    BitField("done", 0, 1, "The program has ended."),
    BitField("error", 1, 1, "The accelerator has stopped with an error."),
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
            BitField(
                "reset",
                1,
                1,
                "Soft reset: complete outstanding bus transfers, then clear all state but the registers below.",
            ),
        ),
    ),
    Register(
        "STATUS",
        0x014,
        Access.RO,
        "Status.",
        (
            BitField("busy", 0, 1, "A program or a soft reset is in progress."),
            *(BitField(f.name, f.lsb + 1, 1, f.doc) for f in _FLAG_FIELDS),
            BitField("cause", 8, 5, "Error cause; see below."),
            BitField("unit", 13, 3, "The unit that reported the error."),
        ),
    ),
    Register(
        "ERROR_INDEX",
        0x018,
        Access.RO,
        "Index of the instruction that caused the error, from 0. With cause SCRATCH_PARITY or WEIGHT_PARITY: the "
        "word's address in the memory.",
    ),
    Register("IRQ_ENABLE", 0x01C, Access.RW, "Flags that raise the interrupt.", _FLAG_FIELDS),
    Register("IRQ_STATUS", 0x020, Access.W1C, "Flags set since they were last cleared.", _FLAG_FIELDS),
    Register("PROGRAM", 0x024, Access.RW, "First word of the program, relative to the memory base."),
    Register("LENGTH", 0x028, Access.RW, "Number of instructions in the program."),
    Register(
        "BASE_LOW",
        0x02C,
        Access.RW,
        "Memory base, lower half: a byte address. Bits below the word size are 0. START latches it.",
        lockable=True,
    ),
    Register("BASE_HIGH", 0x030, Access.RW, "Memory base, upper half. START latches it.", lockable=True),
    Register(
        "WATCHDOG",
        0x034,
        Access.RW,
        "Cycles without a finished instruction or bus beat after which the program stops with an error that names the "
        "unit without progress; 0: disabled.",
        reset=1 << 20,
    ),
    Register(
        "LIMIT",
        0x038,
        Access.RW,
        "Words from the memory base that a program may address; START latches it. 0: no program can run.",
        lockable=True,
    ),
    Register(
        "LOCK",
        0x03C,
        Access.W1S,
        "Locks against further writes.",
        (BitField("window", 0, 1, "BASE_LOW, BASE_HIGH and LIMIT keep their values until the reset input."),),
    ),
    Register(
        "OUTSTANDING",
        0x040,
        Access.RO,
        "What is in flight on the memory bus. The reset command ends when it is 0.",
        (
            BitField("reads", 0, 8, "Read bursts whose address was taken and whose last beat has not come."),
            BitField("writes", 8, 8, "Write bursts whose address was taken and whose response has not come."),
            BitField("offered", 16, 3, "An offer on AR, AW and W, from the lowest bit on, was not taken."),
        ),
    ),
)

_FIRST_CAPABILITY = 0x080
_FIRST_COUNTER = 0x180
ROUNDING_CODES: Mapping[RoundingMode, int] = MappingProxyType({RoundingMode.ORT: 0, RoundingMode.EXACT: 1})


def capability_names() -> tuple[str, ...]:
    """Names of the capability registers: one for every hardware parameter, in the parameters' own order."""
    return tuple(f"CAP_{f.name.upper()}" for f in dataclasses.fields(HardwareParams))


def capability_values(params: HardwareParams) -> tuple[int, ...]:
    """Values of the capability registers: numbers unchanged, booleans as 0 and 1, the rounding mode by its code."""
    return tuple(ROUNDING_CODES[RoundingMode(v)] if isinstance(v, str) else int(v) for v in params.to_dict().values())


def _counters() -> tuple[Register, ...]:
    names: list[tuple[str, str]] = [
        ("CYCLES", "Cycles from start to done or error."),
        ("READ_BEATS", "Beats of the AXI port read, including instruction fetch."),
        ("WRITE_BEATS", "Beats of the AXI port written."),
    ]
    for unit in QUEUED_UNITS:
        names.append((f"{unit.name}_BUSY", f"Cycles in which the {unit.name} unit processed a word."))
        names += [
            (f"{unit.name}_STALL_{s.name}", f"Cycles in which the {unit.name} unit stalled: {s.name}.") for s in Stall
        ]
        names.append((f"{unit.name}_DONE", f"Instructions that the {unit.name} unit has finished; waits refer to it."))
    return tuple(Register(name, _FIRST_COUNTER + 4 * i, Access.RO, doc) for i, (name, doc) in enumerate(names))


COUNTERS = _counters()
COUNTER_BITS = 8 * REGISTER_BYTES
COUNTER_INDEX_BITS = (len(COUNTERS) - 1).bit_length()
SHORT_COUNTER_BITS = COUNTER_INDEX_BITS + 1
"""Bits of a counter that are registers. A memory has the upper ones, which a scan of all counters updates: in one scan
a short counter grows by at most half of its range."""
CAPABILITIES = tuple(
    Register(name, _FIRST_CAPABILITY + 4 * i, Access.RO, f"Parameter {f.name}. {f.metadata['doc']}")
    for i, (name, f) in enumerate(zip(capability_names(), dataclasses.fields(HardwareParams), strict=True))
)
REGISTERS: tuple[Register, ...] = (*_CONTROL, *CAPABILITIES, *COUNTERS)
BY_NAME: Mapping[str, Register] = MappingProxyType({r.name: r for r in REGISTERS})


def register(name: str) -> Register:
    """The register called `name`; an unknown name is an error."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise EncodingError(f"register must be one of {', '.join(BY_NAME)}, not {name!r}") from None


def unpack(name: str, value: int) -> dict[str, int]:
    """The fields of a register's value, by name."""
    return {f.name: value >> f.lsb & ((1 << f.width) - 1) for f in register(name).fields}


def pack(name: str, **fields: int) -> int:
    """A register's value from its fields; a value that does not fit is an error."""
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
