"""The ports of a generated top module, read back from its Verilog, so that every shell fits what was generated."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from intloom.common.errors import FileFormatError

TOP = "npu"


@dataclass(frozen=True)
class Port:
    """One port of a module."""

    name: str
    is_input: bool
    width: int


def parse_ports(verilog: str, module: str = TOP) -> Mapping[str, Port]:
    """The ports of `module`, by name, in the order of their declarations.

    Understands what Yosys writes: a name list in the header, then one declaration a line. Raises `FileFormatError`
    when the module is not there.
    """
    body = re.search(rf"^module\s+{re.escape(module)}\s*\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    if body is None:
        raise FileFormatError(f"the Verilog must hold a module {module!r}, but has none: generate it again")
    ports: dict[str, Port] = {}
    declaration = re.compile(r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s+)?(\w+)\s*;", re.MULTILINE)
    for direction, high, name in declaration.findall(body.group()):
        ports[name] = Port(name, direction == "input", int(high or 0) + 1)
    if not ports:
        raise FileFormatError(f"module {module!r} must declare its ports one a line, as Yosys does: found none")
    return ports
