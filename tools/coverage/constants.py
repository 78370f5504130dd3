"""Bits of signals that can never change: those to which no input and no register brings another value."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from intloom.common.cache.store import Kind, cached_text, key_of
from intloom.common.temporary_files import temporary_folder
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import run_yosys

# Bits that nothing drives keep one value. Nets that nothing reads keep their drivers.
_SCRIPT = f"""
read_verilog npu.v
hierarchy -top {TOP_NAME}
proc
flatten
setattr -set keep 1 w:*
setundef -undriven -zero
opt_expr
opt_clean
techmap
dffunmap
simplemap
opt_clean
write_json npu.json
"""
_UNNAMED, _NAMED = "\\$", "\\net$"
"""Yosys keeps only names that do not start with a dollar sign."""
ANY = "x"
"""The value of a bit that may change."""
_REGISTER = "$_DFF_P_"
Bit = int | str
"""The number of a net, or the value to which a bit is tied."""
Values = Mapping[Bit, str]


def _not(a: str) -> str:
    return {"0": "1", "1": "0"}.get(a, ANY)


def _and(a: str, b: str) -> str:
    return "0" if "0" in (a, b) else _join(a, b)


def _or(a: str, b: str) -> str:
    return _not(_and(_not(a), _not(b)))


def _xor(a: str, b: str) -> str:
    return ANY if ANY in (a, b) else str(int(a != b))


def _mux(a: str, b: str, s: str) -> str:
    return {"0": a, "1": b}.get(s) or _join(a, b)


def _join(a: str, b: str) -> str:
    """The value of a bit that has these two, one after the other."""
    return a if a == b else ANY


_GATES: dict[str, tuple[Callable[..., str], str]] = {
    "$_NOT_": (_not, "A"),
    "$_BUF_": (_join, "AA"),
    "$_AND_": (_and, "AB"),
    "$_OR_": (_or, "AB"),
    "$_XOR_": (_xor, "AB"),
    "$_MUX_": (_mux, "ABS"),
}
"""Functions of the gates that Yosys makes, and the ports of their operands."""


class _Gate(NamedTuple):
    function: Callable[..., str]
    operands: list[Bit]
    output: Bit


def constant_bits(verilog: str) -> dict[str, str]:
    """Of each signal, by path from the top module, the values that its bits have from reset on, the lowest bit first.

    Bits that may change are `ANY`; signals of such bits alone are missing.
    """
    key = key_of("constants", verilog, Path(__file__).read_text(encoding="utf-8"))
    found: dict[str, str] = json.loads(
        cached_text(Kind.RESULT, key, "constants.json", lambda: json.dumps(_constants(verilog)), detail="constant bits")
    )
    return found


def _constants(verilog: str) -> dict[str, str]:
    with temporary_folder("constants") as folder:
        (folder / "npu.v").write_text(verilog.replace(_UNNAMED, _NAMED), encoding="utf-8")
        run_yosys(_SCRIPT, folder)
        module = json.loads((folder / "npu.json").read_text(encoding="utf-8"))["modules"][TOP_NAME]
    values = fixed_values(module)
    nets = {name.replace(_NAMED.lstrip("\\"), "$"): net["bits"] for name, net in module["netnames"].items()}
    words = {name: "".join(values.get(bit, ANY) for bit in bits) for name, bits in nets.items()}
    return {name: word for name, word in words.items() if word.strip(ANY)}


def fixed_values(module: Any) -> dict[Bit, str]:
    """The value that each net of a netlist of gates has in every cycle, or `ANY`.

    A register has its initial value and all values of its input. So a bit is fixed if it has the same value as long as
    all others that are fixed have theirs, which is an induction over the cycles.
    """
    values: dict[Bit, str] = {"0": "0", "1": "1", "x": ANY, "z": ANY, **dict(_initial(module))}
    gates, others = _gates(module, values)
    values |= dict.fromkeys(others, ANY)
    readers: dict[Bit, list[_Gate]] = defaultdict(list)
    for gate in gates:
        for bit in set(gate.operands):
            readers[bit].append(gate)
    waiting = [*gates]
    while waiting:
        gate = waiting.pop()
        if values.get(gate.output) != ANY and all(bit in values for bit in gate.operands):
            value = gate.function(*(values[bit] for bit in gate.operands))
            value = _join(values.get(gate.output, value), value)
            if value != values.get(gate.output):
                values[gate.output] = value
                waiting += readers[gate.output]
    return values


def _gates(module: Any, initial: Values) -> tuple[list[_Gate], list[Bit]]:
    """Gates and registers with an initial value, and the bits that anything else drives."""
    gates = []
    others = [bit for port in module["ports"].values() if port["direction"] != "output" for bit in port["bits"]]
    for cell in module["cells"].values():
        ports, directions = cell["connections"], cell["port_directions"]
        if cell["type"] in _GATES:
            function, names = _GATES[cell["type"]]
            gates.append(_Gate(function, [ports[name][0] for name in names], ports["Y"][0]))
        elif cell["type"] == _REGISTER and ports["Q"][0] in initial:
            gates.append(_Gate(_join, [ports["D"][0], ports["Q"][0]], ports["Q"][0]))
        else:
            others += [bit for name, bits in ports.items() if directions[name] != "input" for bit in bits]
    return gates, others


def _initial(module: Any) -> Iterator[tuple[Bit, str]]:
    for net in module["netnames"].values():
        if init := net["attributes"].get("init"):
            yield from ((bit, value) for bit, value in zip(net["bits"], reversed(init), strict=True) if value in "01")
