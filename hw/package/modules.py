"""The accelerator's Verilog for readers: with the order, the comments and the names of the Python source."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from amaranth.hdl import Fragment, Signal
from amaranth.lib import wiring

from intloom.hw.mac.array.product import OneModule
from intloom.hw.npu import TOP_NAME, Npu
from intloom.hw.package.items import Parts, parts_of, render, without_sources
from intloom.hw.package.names import chosen_names, port_names, renamed
from intloom.hw.package.sections import assigned_names
from intloom.hw.spec.params import HardwareParams
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

_MODULE = re.compile(r"^(?:\(\*[^\n]*\*\)\n)?module (\\\S+|\w+) ?\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_OWN = re.compile(r"^// (intloom_\w+): ", re.MULTILINE)
_LITERAL = re.compile(r"\b(\d+)'h([0-9a-f]+)\b")
_NO_WORD = re.compile(r"\W")
_INSTANCE_KIND = re.compile(r"^  (\\npu\.\S+) ", re.MULTILINE)
_MODULE_NAME = re.compile(r"\\npu\.\S+(?= )")


@dataclass(frozen=True)
class _Source:
    """What the Python source says about a module."""

    documentation: str = ""
    files: tuple[str, ...] = ()
    """Those of the component's class and of its base classes."""
    states: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Names of states, by register and value."""


def _sources(params: HardwareParams) -> dict[str, _Source]:
    """What the Python source says about each module, by the module's path."""
    return dict(_below(Fragment.get(Npu(params), OneModule(arrays=True)), TOP_NAME))


def _below(fragment: Fragment, path: str) -> Iterator[tuple[str, _Source]]:
    components = [origin for origin in fragment.origins or () if isinstance(origin, wiring.Component)]
    states = _states(fragment)
    for component in components:
        classes = [base for base in type(component).__mro__ if base.__module__.startswith("intloom.hw.")]
        files = dict.fromkeys(base.__module__.removeprefix("intloom.hw.").replace(".", "/") + ".py" for base in classes)
        yield path, _Source(inspect.getdoc(component) or "", tuple(files), states)
    if not components:
        yield path, _Source(states=states)
    for inner, name, _ in fragment.subfragments:
        yield from _below(inner, f"{path}.{name}")


def _states(fragment: Fragment) -> dict[str, dict[int, str]]:
    """States of the fragment's FSMs, as long as no other signal has the register's name."""
    statements = (statement for of in fragment.statements.values() for statement in of)
    signals = (signal for statement in statements for signal in statement._lhs_signals())
    driven = {id(signal): signal for signal in signals if isinstance(signal, Signal)}.values()
    counts = Counter(signal.name for signal in driven)
    return {
        signal.name: dict(_state_names(signal))
        for signal in driven
        if callable(signal.decoder) and not isinstance(signal.decoder, type) and counts[signal.name] == 1
    }


def _state_names(register: Signal) -> Iterator[tuple[int, str]]:
    for value in range(1 << len(register)):
        # Amaranth's decoder of an FSM ends in the value, and knows no other values than those of states.
        with suppress(KeyError):
            yield value, register.decoder(value).rpartition("/")[0]


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


def _with_states(parts: Parts, states: Mapping[str, Mapping[int, str]]) -> tuple[Parts, list[str]]:
    """Names of states in place of their values, and the declarations of these names."""
    items, declarations = list(parts.items), []
    for register, names in states.items():
        width = max(1, max(names).bit_length())
        prefix = register.removesuffix("state").upper()
        constants = {value: prefix + _NO_WORD.sub("_", name) for value, name in names.items()}
        compared = re.compile(rf"\b{register} (?:==|<=) {width}'h|^  assign {register}_next\w* *= ", re.MULTILINE)
        for number, item in enumerate(items):
            if compared.search(item.text):
                items[number] = replace(item, text=_LITERAL.sub(partial(_named, constants, width), item.text))
        bits = f" [{width - 1}:0]" if width > 1 else ""
        declarations += [f"  localparam{bits} {name} = {width}'h{value:x};\n" for value, name in constants.items()]
    return replace(parts, items=tuple(items)), declarations


def _named(states: Mapping[int, str], width: int, literal: re.Match[str]) -> str:
    """The state of a value, or the states of several in one literal."""
    count, rest = divmod(int(literal[1]), width)
    values = [int(literal[2], 16) >> width * at & (1 << width) - 1 for at in reversed(range(count))]
    if rest or not all(value in states for value in values):
        return literal[0]
    named = ", ".join(states[value] for value in values)
    return named if count == 1 else f"{{ {named} }}"


def _unseen_names(parts: Parts) -> Iterator[tuple[str, str]]:
    """Wires that the source names in an assignment to several, where all but one of the names are known."""
    declared: dict[tuple[str, int], set[str]] = {}
    for item in parts.items:
        if declaration := item.declaration:
            for source_line in item.lines:
                declared.setdefault(source_line, set()).add(declaration["name"])
    for (path, line), names in declared.items():
        unnamed = [name for name in names if name.startswith("\\$signal")]
        unseen = [name.lstrip("_") for name in assigned_names(path, line) if name not in names]
        if len(unnamed) == len(unseen) == 1:
            yield unnamed[0], unseen[0]


def _names(modules: Mapping[str, str], sources: Mapping[str, _Source]) -> dict[str, Mapping[str, str]]:
    """New names of each module's wires and ports: from the top module down."""
    wanted: dict[str, dict[str, str]] = {name: {} for name in modules}
    chosen: dict[str, Mapping[str, str]] = {}

    def visit(name: str) -> None:
        text = without_sources(modules[name])
        wanted[name] |= dict(_unseen_names(parts_of(modules[name])))
        chosen[name] = names = chosen_names(text, wanted[name], sources.get(_path(name), _Source()).states)
        kinds = {kind: None for kind in _INSTANCE_KIND.findall(text) if kind in modules}
        for kind, port, wish in port_names(text, names):
            if kind in wanted:
                wanted[kind][port] = wish
        for kind in kinds:
            visit(kind)

    visit(TOP_NAME)
    return chosen


def readable_modules(params: HardwareParams, *, memory_macros: bool = False) -> dict[str, str]:
    """Text of every module by its name, the top module first; deterministic.

    The logic is that of `generate_verilog`: names, the order of items and the form of the header differ, states of FSMs
    are local parameters, and comments are added. With `memory_macros` large memories are instances of `RAM_MODULE`.
    """
    generate = generate_verilog_with_macros if memory_macros else generate_verilog
    verilog = generate(params, source_lines=True)
    own = _OWN.search(verilog)
    design = verilog[: own.start()] if own else verilog
    texts = {m[1]: m[0] for m in _MODULE.finditer(design)}
    plain = _plain_names([*texts])
    sources = _sources(params)
    names = _names(texts, sources)
    modules = {}
    for name in sorted(texts, key=lambda name: name != TOP_NAME):
        source = sources.get(_path(name), _Source())
        text = _MODULE_NAME.sub(lambda m: plain.get(m[0], m[0]), renamed(texts[name], names[name], names))
        parts, constants = _with_states(parts_of(text), source.states)
        modules[plain[name]] = _comment(source.documentation) + render(parts, source.files, constants)
    # Modules in several forms for synthesis and simulation: their text has macros and a comment already.
    verilog = without_sources(verilog)
    starts = [*_OWN.finditer(verilog)]
    for start, end in zip(starts, [*(m.start() for m in starts[1:]), len(verilog)], strict=True):
        modules[start[1]] = verilog[start.start() : end]
    return modules
