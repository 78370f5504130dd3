"""Names for the anonymous wires of Yosys's Verilog, from what each is used for.

Yosys names the result of an expression `$12` or `$procmux$34_Y`. Renaming is one to one within a module, so the logic
cannot change: replacing the new names by the old ones gives the old text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_IDENTIFIER = re.compile(r"\\\S+(?= )|(?<![\w'$\\.])[A-Za-z_]\w*")
_ANONYMOUS = re.compile(r"(?<!\.)\\\$\S+(?= )")
_ASSIGN = re.compile(r"^\s*assign (\{.*?\}|\\\S+ |\w+)\s*(?:\[[^]]*\])*\s*= (.*);$")
_ENABLE = re.compile(r"^\s*(?:else )?if \((.*?)\)(?: (\\\S+ |\w+)[^<;]*<= (.*);)?$")
_REGISTER = re.compile(r"^\s*(?:else )?(\\\S+ |\w+)\s*(?:\[[^]]*\])* <= (.*);$")
_CONNECTION = re.compile(r"^\s*\.(\\\S+ |\w+)\((.*)\),?$")
_INSTANCE = re.compile(r"^  (?:\\\S+ |\w+)\s*(?:#\(.*\) )?(\\\S+ |\w+)\s*\($")
_IS_CONSTANT = re.compile(r"^(\\\S+|\w+)\s*(?:\[[^]]*\])? == \d+'([hbd])([0-9a-f]+)$")
_BASES = {"h": 16, "b": 2, "d": 10}
_OPERATORS = (
    (re.compile(r" \? "), "mux"),
    (re.compile(r" \* "), "product"),
    (re.compile(r" (<<|<<<) "), "shifted_left"),
    (re.compile(r" (>>|>>>) "), "shifted_right"),
    (re.compile(r" (<|<=|>|>=) "), "compare"),
    (re.compile(r" == "), "equal"),
    (re.compile(r" != "), "differ"),
    (re.compile(r" \+ "), "sum"),
    (re.compile(r" - "), "difference"),
    (re.compile(r"^\s*\|"), "any"),
    (re.compile(r"^\s*&"), "all"),
    (re.compile(r"^\s*\^"), "parity"),
    (re.compile(r" \|\|? "), "or"),
    (re.compile(r" &&? "), "and"),
    (re.compile(r" \^ "), "xor"),
    (re.compile(r"^\s*[~!]"), "not"),
    (re.compile(r"^\s*-"), "negative"),
    (re.compile(r"\[.*\]$"), "element"),
)
_LONGEST = 48
_DEEPEST = 200


@dataclass
class _Uses:
    """What the lines of a module say about its wires."""

    drivers: dict[str, str] = field(default_factory=dict)
    """Right side of each wire's assignment."""
    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    """First use of each anonymous wire: what it contributes to, and its role there; the empty role is an operand."""

    def add(self, text: str, target: str, role: str) -> None:
        """Record uses of anonymous wires in an expression."""
        alone = text.strip()
        for found in _ANONYMOUS.findall(text):
            self.roles.setdefault(found, (target, role if role != "next" or alone == found else ""))


def _collect(lines: list[str]) -> _Uses:
    uses = _Uses()
    instance, waiting = "", ""
    for line in lines:
        if waiting and (register := _REGISTER.match(line)):
            uses.add(waiting, register[1].strip(), "enable")
            waiting = ""
        if assign := _ASSIGN.match(line):
            target = assign[1].strip()
            uses.drivers.setdefault(target, assign[2].strip())
            uses.add(assign[2] + " ", target, "")
        elif enable := _ENABLE.match(line):
            if enable[2]:
                uses.add(enable[1] + " ", enable[2].strip(), "enable")
                uses.add(enable[3] + " ", enable[2].strip(), "next")
            else:
                waiting = enable[1] + " "
        elif register := _REGISTER.match(line):
            uses.add(register[2] + " ", register[1].strip(), "next")
        elif header := _INSTANCE.match(line):
            instance = header[1].strip()
        elif connection := _CONNECTION.match(line):
            uses.add(connection[2] + " ", f"{instance}_{connection[1].strip()}", "port")
    return uses


def _plain(name: str) -> str:
    """A name as a simple identifier."""
    plain = re.sub(r"\W+", "_", name.removeprefix("\\")).strip("_")
    plain = plain[:_LONGEST].rstrip("_") or "signal"
    return plain if plain[0].isalpha() else f"signal_{plain}"


def _operation(driver: str) -> str:
    return next((name for pattern, name in _OPERATORS if pattern.search(driver)), "value")


def _root(wire: str, uses: _Uses) -> str:
    """The named signal that an anonymous wire contributes to."""
    for _ in range(_DEEPEST):
        if wire not in uses.roles:
            break
        wire, role = uses.roles[wire]
        if not wire.startswith("\\$"):
            return _plain(wire) if role != "next" else f"{_plain(wire)}_next"
    return "unused" if wire.startswith("\\$") else _plain(wire)


def _wanted(wire: str, uses: _Uses) -> str:
    driver = uses.drivers.get(wire, "")
    target, role = uses.roles.get(wire, ("", ""))
    if (equal := _IS_CONSTANT.match(driver)) and not equal[1].startswith("\\$"):
        return f"{_plain(equal[1])}_is_{int(equal[3], _BASES[equal[2]])}"
    if role and not target.startswith("\\$"):
        return _plain(target) if role == "port" else f"{_plain(target)}_{role}"
    return f"{_root(wire, uses)}_{_operation(driver)}"


def chosen_names(module: str) -> Mapping[str, str]:
    """The new name of every anonymous wire of a module, each different from all names in the module."""
    lines = module.splitlines()
    uses = _collect(lines)
    taken = {name.removeprefix("\\") for name in _IDENTIFIER.findall(module)}
    names: dict[str, str] = {}
    # A port's name is in the module above as well, so it stays.
    ports = set(_ANONYMOUS.findall(module[: module.index(";")]))
    for wire in dict.fromkeys(w for w in _ANONYMOUS.findall(module) if w not in ports):
        wanted = _wanted(wire, uses)
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        names[wire] = name
    return names


def with_names(module: str) -> str:
    """A module's text with a name for every anonymous wire."""
    names = chosen_names(module)
    return _ANONYMOUS.sub(lambda match: names.get(match[0], match[0]), module)
