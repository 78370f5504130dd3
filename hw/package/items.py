"""A module of Yosys's Verilog for readers: ports in groups, items in the order of the Python source, with its comments.

The order of a module's items has no meaning in Verilog, so the logic cannot change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from intloom.hw.package.names import IDENTIFIER
from intloom.hw.package.sections import Section, section_at

_MODULE = re.compile(
    r"\A(?P<attributes>(?:\(\*[^\n]*\*\)\n)*)module (?P<name>\\\S+|\w+) ?\((?P<ports>.*?)\);\n"
    r"(?P<body>.*)^endmodule\n\Z",
    re.DOTALL | re.MULTILINE,
)
_SOURCE = re.compile(r" *\(\* src = \"([^\"]*)\" \*\)")
_SOURCE_LINE = re.compile(r"^ *\(\* src = \"([^\"]*)\" \*\)\n", re.MULTILINE)
_DECLARATION = re.compile(
    r"^  (?P<kind>input|output|wire|reg)(?P<shape>(?: signed)?(?: \[[^]]*\])?) (?P<name>\\\S+|\w+) ?(?P<rest>[^;]*);$",
    re.MULTILINE,
)
_CLOCK_OR_RESET = re.compile(r"(^|_)(clk|rst)$")
_CONTINUES = ("  end", "  )")
_TARGETS = (
    re.compile(r"^  assign (\{.*?\}|\\\S+|\w+)", re.MULTILINE),
    re.compile(r"(\{[^{}]*\}|\\\S+|\w+) *(?:\[[^]]*\])* <= "),
    re.compile(r"^  function (?:\[[^]]*\] )?(\\\S+|\w+)", re.MULTILINE),
    re.compile(r"^    (\\\S+|\w+) *\[\d+\] = ", re.MULTILINE),
)


@dataclass(frozen=True)
class Item:
    """A declaration, statement, process, function or instance, with its attributes."""

    text: str
    lines: tuple[tuple[str, int], ...] = ()
    """Files and lines of the Python source that it comes from."""

    @property
    def declaration(self) -> re.Match[str] | None:
        """The declaration of a port or net, with its `name`, if it is one."""
        return _DECLARATION.search(self.text)

    @property
    def targets(self) -> set[str]:
        """Nets and functions that it defines."""
        return {
            word
            for pattern in _TARGETS
            for part in pattern.findall(self.text)
            for word in IDENTIFIER.findall(f"{part} ")
        }


@dataclass(frozen=True)
class Parts:
    """A module in parts."""

    attributes: str
    name: str
    ports: tuple[str, ...]
    items: tuple[Item, ...]


def without_sources(verilog: str) -> str:
    """Verilog without attributes that name lines of the Python source."""
    return _SOURCE.sub("", _SOURCE_LINE.sub("", verilog))


def _chunks(body: str) -> Iterator[str]:
    """Text of each item: its first line is indented by two spaces, behind lines of attributes."""
    chunk: list[str] = []
    for line in body.splitlines(keepends=True):
        begins = line.startswith("  ") and not line[2:3].isspace() and not line.startswith(_CONTINUES)
        if begins and any(not before.lstrip().startswith("(*") for before in chunk):
            yield "".join(chunk)
            chunk = []
        chunk.append(line)
    yield "".join(chunk)


def parts_of(module: str) -> Parts:
    """Take a module apart."""
    match = _MODULE.match(module)
    assert match, module[:200]
    items = []
    for chunk in _chunks(match["body"]):
        named = _SOURCE_LINE.findall(chunk) + _SOURCE.findall(_SOURCE_LINE.sub("", chunk))
        lines = [source.rpartition(":") for names in named for source in names.split("|")]
        items.append(Item(without_sources(chunk), tuple((path, int(line)) for path, _, line in lines)))
    ports = tuple(port.strip() for port in match["ports"].replace("\n", "").split(","))
    return Parts(match["attributes"], match["name"], ports, tuple(items))


def render(parts: Parts, files: Sequence[str], constants: Sequence[str] = ()) -> str:
    """The module, arranged by the Python files of its component; `constants` are lines before its nets."""
    declared: dict[str, list[re.Match[str]]] = {}
    attributes: dict[str, str] = {}
    rest = []
    for item in parts.items:
        if declaration := item.declaration:
            declared.setdefault(declaration["name"], []).append(declaration)
            attributes[declaration["name"]] = attributes.get(declaration["name"], "") + item.text[: declaration.start()]
        else:
            rest.append(item)
    nets = [f"{attributes[name]}{of[0][0]}\n" for name, of in declared.items() if name not in parts.ports]
    body = "".join([*constants, *nets, *_arranged(rest, files)])
    header = f"module {parts.name} (\n{_ports(parts.ports, declared, attributes)});\n"
    return f"{without_sources(parts.attributes)}{header}{body}endmodule\n"


def _ports(ports: Sequence[str], declared: Mapping[str, list[re.Match[str]]], attributes: Mapping[str, str]) -> str:
    """The ports' declarations, a line each: inputs, clocks and resets first, then outputs."""
    groups: dict[str, list[str]] = {"input": [], "output": []}
    for port in sorted(ports, key=lambda name: not _CLOCK_OR_RESET.search(name)):
        direction, net = declared[port]
        kind = "output reg" if net["kind"] == "reg" else direction["kind"]
        # An escaped name ends with a space.
        value = f" {net['rest']}" if net["rest"] or port.startswith("\\") else ""
        groups[direction["kind"]].append(f"{attributes[port]}  {kind}{net['shape']} {port}{value}")
    texts = [f"  // {direction}s\n" + ",\n".join(group) for direction, group in groups.items() if group]
    return ",\n".join(texts) + "\n"


class _Waiting:
    """Items without a line of their own: each is written before the first that needs it."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = {id(item): item for item in items}
        self._by_target = {target: item for item in items for target in item.targets}

    def needed_by(self, item: Item) -> Iterator[Item]:
        """Items that this one needs, and those that they need, in order."""
        for word in dict.fromkeys(IDENTIFIER.findall(item.text)):
            needed = self._by_target.get(word)
            if needed is not None and id(needed) in self._items:
                del self._items[id(needed)]
                yield from self.needed_by(needed)
                yield needed

    @property
    def left(self) -> list[Item]:
        """What nothing has needed."""
        return list(self._items.values())


def _origin(item: Item, files: Sequence[str]) -> tuple[int, Section, int] | None:
    """File, function and line that an item comes from; what a constructor declares has no line of its own."""
    for path, line in item.lines:
        section = section_at(path, line) if path in files else None
        if section is not None and section.name != "__init__":
            return files.index(path), section, line
    return None


def _arranged(items: Sequence[Item], files: Sequence[str]) -> Iterator[str]:
    """Items in the order of these files, under the titles and comments of their functions."""
    origins = [(item, _origin(item, files)) for item in items]
    waiting = _Waiting([item for item, origin in origins if origin is None])
    ordered = [(*origin, item) for item, origin in origins if origin is not None]
    ordered.sort(key=lambda entry: (entry[0], entry[1].first, entry[2]))
    for section, entries in groupby(ordered, key=lambda entry: entry[1]):
        yield f"\n  // {section.title}\n"
        comments = list(section.comments)
        for _, _, line, item in entries:
            for comment in [c for c in comments if c.first <= line <= c.last]:
                comments.remove(comment)
                yield "".join(f"  // {text}\n" for text in comment.lines)
            yield from (needed.text for needed in waiting.needed_by(item))
            yield item.text
    if left := waiting.left:
        yield "\n"
        yield from (item.text for item in left)
