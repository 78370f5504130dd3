"""Names for the wires of Yosys's Verilog that have none in the source, from what each is used for.

Yosys names the result of an expression `$12` or `$procmux$34_Y`, Amaranth a second signal of a name `name$56`. Renaming
is one to one within a module, so the logic cannot change: replacing the new names by the old ones gives the old text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

IDENTIFIER = re.compile(r"\\\S+(?= )|(?<![\w'$\\.])[A-Za-z_]\w*")
_ANONYMOUS = re.compile(r"(?<!\.)\\\$\S+(?= )")
"""Names that only a tool gave, but not those of ports of an instance."""
_NUMBERED = re.compile(r"(?<!\.)\\(?!npu\.)\S*\$\S+(?= )")
"""All names with a number behind a dollar sign, but not those of modules."""
_NUMBERED_AND_SPACE = re.compile(f"({_NUMBERED.pattern}) ")
_NUMBER = re.compile(r"(\$\d+)+$")
_PASSED_ON = re.compile(r"\\port(\$\d+)+")
"""Amaranth's name for a port through which a signal of other modules passes."""
_ASSIGN = re.compile(r"^\s*assign (\{.*?\}|\\\S+ |\w+)\s*(?:\[[^]]*\])*\s*= (.*);$")
_ENABLE = re.compile(r"^\s*(?:else )?if \((.*?)\)(?: (\\\S+ |\w+)[^<;]*<= (.*);)?$")
_REGISTER = re.compile(r"^\s*(?:else )?(\\\S+ |\w+)\s*(?:\[[^]]*\])* <= (.*);$")
_CONNECTION = re.compile(r"^\s*\.(\\\S+ |\w+)\((.*)\),?$")
_INSTANCE = re.compile(r"^  (?P<kind>\\\S+ |\w+)\s*(?:#\(.*\) )?(?P<name>\\\S+ |\w+)\s*\($")
_IS_CONSTANT = re.compile(r"^(\\\S+|\w+)\s*(?:\[[^]]*\])? == \d+'([hbd])([0-9a-f]+)$")
_IS_ZERO = re.compile(r"^! (\w+)$")
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
_FUNCTION = re.compile(r"\bprocmux_\d+\b")
_SELECTION = re.compile(r"^  assign (?:\{ )?(\\\S+|\w+)[^=]* = (procmux_\d+) \(", re.MULTILINE)
States = Mapping[str, Mapping[int, str]]
"""Names of the states of each state register, by value."""
_LONGEST = 48
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        accept_on alias always and assert assign assume automatic before begin bind bins binsof bit break buf bufif0
        bufif1 byte case casex casez cell chandle checker class clocking cmos config const constraint context continue
        cover covergroup coverpoint cross deassign default defparam design disable dist do edge else end endcase
        endclass endmodule endfunction endgenerate endtask enum event eventually expect export extends extern final
        first_match for force foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone
        implements implies import incdir include initial inout input inside instance int integer interconnect interface
        intersect join large let liblist library local localparam logic longint macromodule matches medium modport
        module nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package
        packed parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup pure
        rand randc randcase randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos
        rpmos rtran scalared sequence shortint shortreal showcancelled signed small soft solve specify specparam static
        string strong strong0 strong1 struct super supply0 supply1 table tagged task this throughout time timeprecision
        timeunit tran tri tri0 tri1 triand trior trireg type typedef union unique unsigned until untyped use uwire var
        vectored virtual void wait wand weak weak0 weak1 while wildcard wire with within wor xnor xor
        """,
    )
)
"""Words that Verilog and SystemVerilog have for themselves."""
_DEEPEST = 200


@dataclass
class _Uses:
    """What the lines of a module say about its wires."""

    drivers: dict[str, str] = field(default_factory=dict)
    """Right side of each wire's assignment."""
    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    """First use of each anonymous wire: what it contributes to, and its role there; the empty role is an operand."""
    connections: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Instances and ports that a wire is connected to."""

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
            target = IDENTIFIER.findall(assign[1] + " ")[0]
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
            instance = header["name"].strip()
        elif connection := _CONNECTION.match(line):
            uses.add(connection[2] + " ", f"{instance}_{connection[1].strip()}", "port")
            uses.connections.setdefault(connection[2].strip(), []).append((instance, connection[1].strip()))
    return uses


def _plain(name: str) -> str:
    """A name as a simple identifier."""
    plain = re.sub(r"\W+", "_", _NUMBER.sub("", name).removeprefix("\\")).strip("_")
    plain = plain[:_LONGEST].rstrip("_") or "signal"
    return plain if plain[0].isalpha() else f"signal_{plain}"


def _operation(driver: str) -> str:
    return next((name for pattern, name in _OPERATORS if pattern.search(driver)), "value")


class _Namer:
    """Wishes for names in one module; `names` has those that have been chosen."""

    def __init__(self, module: str, states: States) -> None:
        self._uses = _collect(module.splitlines())
        self._states = states
        self.names: dict[str, str] = {}

    def wanted(self, wire: str) -> str:
        """A name from what the wire is used for."""
        uses = self._uses
        driver = uses.drivers.get(wire, "")
        target, role = uses.roles.get(wire, ("", ""))
        if (equal := _IS_CONSTANT.match(driver)) and not equal[1].startswith("\\$"):
            return self._equality(equal[1], int(equal[3], _BASES[equal[2]]))
        if (zero := _IS_ZERO.match(driver)) and zero[1] in self._states:
            return self._equality(zero[1], 0)
        if role and not target.startswith("\\$"):
            return self._plain(target) if role == "port" else f"{self._plain(target)}_{role}"
        return f"{self._root(wire)}_{_operation(driver)}"

    def connected(self, wire: str) -> str:
        """A name for a wire whose name another one has, or for one that only passes from module to module."""
        connections = self._uses.connections.get(wire, [])
        if _PASSED_ON.fullmatch(wire):
            return "_to_".join(_plain(instance) for instance, _ in connections[:2]) or "passed_on"
        named = [(instance, port) for instance, port in connections if "$" not in port]
        return "_".join(map(_plain, named[0])) if named else _plain(wire)

    def _equality(self, register: str, value: int) -> str:
        return f"{self._plain(register)}_is_{self._states.get(register, {}).get(value, value)}"

    def _plain(self, name: str) -> str:
        return _plain(self.names.get(name, name))

    def _root(self, wire: str) -> str:
        """The named signal that an anonymous wire contributes to."""
        for _ in range(_DEEPEST):
            if wire not in self._uses.roles:
                break
            wire, role = self._uses.roles[wire]
            if not wire.startswith("\\$") or wire in self.names:
                return self._plain(wire) if role != "next" else f"{self._plain(wire)}_next"
        return "unused" if wire.startswith("\\$") else self._plain(wire)


def chosen_names(module: str, known: Mapping[str, str], states: States) -> Mapping[str, str]:
    """New names of a module's wires with a dollar sign in their names, and of its functions; no two names are equal.

    `known` has names for ports, from the wires that they are connected to, and those that only the source tells.
    """
    namer = _Namer(module, states)
    taken = {name.removeprefix("\\") for name in IDENTIFIER.findall(module)}

    def choose(wire: str, wanted: str) -> None:
        name, number = wanted, 1
        while name in taken or name in _RESERVED:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        namer.names[wire] = name

    # Names of anonymous wires contain those of others.
    wires = sorted(dict.fromkeys(_NUMBERED.findall(module)), key=lambda w: w.startswith("\\$") and w not in known)
    for wire in wires:
        choose(wire, known.get(wire) or (namer.wanted if wire.startswith("\\$") else namer.connected)(wire))
    for wire, function in _SELECTION.findall(module):
        choose(function, f"{_plain(namer.names.get(wire, wire))}_select")
    return namer.names


def port_names(module: str, names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Type of each instance, its ports with a dollar sign in their names, and names for them from their wires."""
    kind = ""
    for line in module.splitlines():
        if header := _INSTANCE.match(line):
            kind = header["kind"].strip()
        elif (connection := _CONNECTION.match(line)) and "$" in connection[1]:
            port, wire = connection[1].strip(), IDENTIFIER.findall(connection[2] + " ")
            own = not _PASSED_ON.fullmatch(port) or not wire
            yield kind, port, _plain(port if own else names.get(wire[0], wire[0]))


def renamed(text: str, names: Mapping[str, str], ports: Mapping[str, Mapping[str, str]]) -> str:
    """A module's text with these names of its wires, and of the ports of its instances by the instances' types."""
    kind, lines = "", []
    for line in text.splitlines(keepends=True):
        if header := _INSTANCE.match(line):
            kind = header["kind"].strip()
        # An escaped name needs a space behind it, a plain one does not.
        new = _NUMBERED_AND_SPACE.sub(lambda match: names.get(match[1], match[0]), line)
        if (connection := _CONNECTION.match(new.rstrip("\n"))) and connection[1].strip() in ports.get(kind, {}):
            new = new.replace(f".{connection[1]}(", f".{ports[kind][connection[1].strip()]}(", 1)
        lines.append(new)
    return _FUNCTION.sub(lambda match: names.get(match[0], match[0]), "".join(lines))
