"""Write ports of the local memories, and memories themselves, found in the Verilog; benches log writes and contents.

Yosys drops ports with constant values and may rename others, so each signal is looked up in the text of its module.
"""

import re
from dataclasses import dataclass
from itertools import product

from intloom.common.errors import FileFormatError
from intloom.sim.rtl.ports import TOP
from intloom.sim.rtl.write_log import Stored, Writer

_ALL_BYTES = "32'hFFFFFFFF"


@dataclass(frozen=True)
class Tap:
    """One write port as Verilog expressions, seen from the bench."""

    writer: Writer
    taken: str
    """High in a cycle in which a word is written."""
    address: str
    data: str
    bits: int
    """Of `data`."""
    mask: str


@dataclass(frozen=True)
class Contents:
    """A memory of the accelerator as a Verilog expression, seen from the bench."""

    stored: Stored
    memory: str
    depth: int
    first_word: int
    """Word at which it begins in the record: several memories may be parts, or copies, of one."""


@dataclass(frozen=True)
class _Module:
    """A module, the port's name in it, and the module's Verilog."""

    path: str
    port: str
    text: str


_PORTS = (
    (Writer.LOAD_SCRATCH, "engine.scratch", "load", "load"),
    (Writer.LOAD_WEIGHT, "engine.weights", "write", "load"),
    (Writer.MAC, "engine.scratch", "mac", "mac"),
    (Writer.VEC, "engine.scratch", "vec", "vec"),
)
"""Each writer's module, the name of its port there, and of the same wires in the module around it."""


def find_taps(verilog: str) -> tuple[Tap, ...]:
    """The write ports of both local memories; `FileFormatError` when one is not where it should be."""
    return tuple(_tap(verilog, *port) for port in _PORTS)


def result_taps(verilog: str) -> tuple[Tap, ...]:
    """The ports by which the array and the vector unit write results; none in Verilog of another structure.

    They are enough to reconstruct tensors that never leave the scratchpad.
    """
    try:
        return tuple(_tap(verilog, *port) for port in _PORTS if port[0] in (Writer.MAC, Writer.VEC))
    except FileFormatError:
        return ()


_STORED = (
    (Stored.WEIGHTS, "engine.weights"),
    (Stored.MAC_TABLE, "engine.mac.epilogue.table"),
    (Stored.VECTOR_TABLE, "engine.vec.datapath.table"),
    (Stored.EXPONENTIALS, "engine.vec.softmax"),
)
"""The modules whose only memories are those of a kind; hardware without Softmax lacks the last one."""
_MEMORY = re.compile(r"^\s*reg (?:\[\d+:0\] )?(\S+) \[(\d+):0\];", re.MULTILINE)


def find_contents(verilog: str) -> tuple[Contents, ...]:
    """Weight memory and tables; copies of a table follow each other."""
    contents: list[Contents] = []
    for stored, module in _STORED:
        try:
            text = _module(verilog, module)
        except FileFormatError:
            if stored is Stored.EXPONENTIALS:
                continue
            raise
        first = 0
        # `table` is a keyword of Verilog unless it is escaped.
        path = ".".join(f"\\{part} " for part in module.split("."))
        for name, last in sorted(_MEMORY.findall(text), key=lambda memory: [*map(int, re.findall(r"\d+", memory[0]))]):
            contents.append(Contents(stored, f"dut.{path}.{name} ", int(last) + 1, first))
            first += int(last) + 1
    return tuple(contents)


def _tap(verilog: str, writer: Writer, module: str, port: str, outer_port: str) -> Tap:
    # A port of which some bits are constant loses its name in the module, but the wire that leads to it keeps its own.
    around = module.rpartition(".")[0]
    modules = (_Module(module, port, _module(verilog, module)), _Module(around, outer_port, _module(verilog, around)))

    def needed(*members: str) -> tuple[str, int]:
        wire = _wire(modules, members)
        if wire is None:
            raise FileFormatError(f"module {TOP}.{module} must have a signal {port}__{members[0]} to be watched")
        return wire

    ready = _wire(modules[:1], ("ready",))
    valid, _ = needed("valid", "en")
    data, bits = needed("data")
    return Tap(
        writer=writer,
        taken=f"{valid} & {ready[0]}" if ready else valid,
        address=needed("addr")[0],
        data=data,
        bits=bits,
        mask=f"32'({mask[0]})" if (mask := _wire(modules, ("mask",))) else _ALL_BYTES,
    )


def _wire(modules: tuple[_Module, ...], members: tuple[str, ...]) -> tuple[str, int] | None:
    """The first of a port's members that is a wire in one of the modules, as seen from the bench, and its width."""
    for module, member in product(modules, members):
        wire = rf"^\s*wire\s+(?:\[(\d+):0\]\s+)?(\\?{module.port}__{member}(?:\$\d+)?)\s*;"
        if (found := re.search(wire, module.text, re.MULTILINE)) is not None:
            # An escaped name ends with a space.
            return f"dut.{module.path}.{found[2]} ", int(found[1] or 0) + 1
    return None


def _module(verilog: str, module: str) -> str:
    # `intloom verilog` writes plain names.
    name = rf"(?:\\{TOP}\.{re.escape(module)}|{TOP}_{module.replace('.', '_')})"
    pattern = rf"^module {name} \(.*?^endmodule"
    match = re.search(pattern, verilog, re.MULTILINE | re.DOTALL)
    if match is None:
        raise FileFormatError(f"the Verilog must hold a module {TOP}.{module} to be watched, but has none")
    return match.group()
