"""The accelerator's Verilog for readers: named wires, plain module names, and a comment before each module."""

import inspect
import re
from collections.abc import Iterator

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from intloom.hw.mac.array.product import OneModule
from intloom.hw.npu import TOP_NAME, Npu
from intloom.hw.package.names import with_names
from intloom.hw.spec.params import HardwareParams
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

_MODULE = re.compile(r"^(?:\(\*[^\n]*\*\)\n)?module (\\\S+|\w+) ?\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_OWN = re.compile(r"^// (intloom_\w+): ", re.MULTILINE)
_MODULE_NAME = re.compile(r"\\npu\.\S+(?= )")


def _documentation(params: HardwareParams) -> dict[str, str]:
    """Docstring of the component behind each module, by the module's path."""
    return dict(_below(Fragment.get(Npu(params), OneModule(arrays=True)), TOP_NAME))


def _below(fragment: Fragment, path: str) -> Iterator[tuple[str, str]]:
    for origin in getattr(fragment, "origins", None) or ():
        if isinstance(origin, wiring.Component):
            yield path, inspect.getdoc(origin) or ""
    for inner, name, _ in fragment.subfragments:
        yield from _below(inner, f"{path}.{name}")


def _path(module_name: str) -> str:
    """A module's path in the hierarchy, without Yosys's number."""
    return module_name.removeprefix("\\").partition("$")[0]


def _plain_names(names: list[str]) -> dict[str, str]:
    """A simple identifier for every module; different."""
    taken: set[str] = set()
    plain: dict[str, str] = {}
    for name in names:
        wanted = re.sub(r"\W", "_", _path(name))
        chosen = wanted if wanted not in taken else re.sub(r"\W", "_", name.removeprefix("\\"))
        taken.add(chosen)
        plain[name] = chosen
    return plain


def _comment(text: str) -> str:
    return "".join(f"// {line}".rstrip() + "\n" for line in text.splitlines())


def readable_modules(params: HardwareParams, *, memory_macros: bool = False) -> dict[str, str]:
    """Text of every module by its name, the top module first; deterministic.

    The logic is that of `generate_verilog`: only names of wires and modules differ, and comments are added. With
    `memory_macros` large memories are instances of the module `RAM_MODULE`.
    """
    verilog = generate_verilog_with_macros(params) if memory_macros else generate_verilog(params)
    own = _OWN.search(verilog)
    design = verilog[: own.start()] if own else verilog
    found = list(_MODULE.finditer(design))
    plain = _plain_names([m[1] for m in found])
    documentation = _documentation(params)
    modules = {}
    for match in sorted(found, key=lambda m: m[1] != TOP_NAME):
        text = _MODULE_NAME.sub(lambda m: plain.get(m[0], m[0]), with_names(match[0]))
        modules[plain[match[1]]] = _comment(documentation.get(_path(match[1]), "")) + text
    # Modules in several forms for synthesis and simulation: their text has macros and a comment already.
    starts = [*_OWN.finditer(verilog)]
    for start, end in zip(starts, [*(m.start() for m in starts[1:]), len(verilog)], strict=True):
        modules[start[1]] = verilog[start.start() : end]
    return modules
