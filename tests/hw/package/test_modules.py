"""Readable Verilog: the same logic as the generated text, with names, states and comments, in the source's order."""

import re
from collections import Counter

import pytest

from intloom.hw.mac.array.product import PRODUCT_MODULE
from intloom.hw.package.items import parts_of
from intloom.hw.package.modules import readable_modules
from intloom.hw.spec.params import preset
from intloom.sim.rtl.verilog import verilog_of

pytestmark = pytest.mark.slow
_MODULE = re.compile(r"^module .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\\\S+ |(?<![\w'$])[A-Za-z_]\w*")
_STATES = re.compile(r"^  localparam(?: \[\d+:0\])? (\w+) = (\d+)'h(\w+);\n", re.MULTILINE)
_STATE_LIST = re.compile(r"\{ (FSM_\w+(?:, FSM_\w+)+) \}")


@pytest.fixture(scope="module")
def modules(verilog_from_cache: None) -> dict[str, str]:
    return readable_modules(preset("nano"))


def test_no_name_has_a_dollar_sign(modules: dict[str, str]) -> None:
    """But for the modules with a form for simulators, which are as they are generated."""
    own = [name for name in modules if name.startswith("intloom_")]
    for name, text in modules.items():
        if name not in own:
            assert not re.findall(r"\\\S*\$\S*", text), name
            assert "procmux" not in text


def test_each_module_is_the_generated_one_with_other_names(modules: dict[str, str]) -> None:
    """Items without their order, and without the names of wires, modules and states, are equal."""
    generated = Counter(_shape(m[0]) for m in _MODULE.finditer(verilog_of(preset("nano"))))
    readable = Counter(_shape(m[0]) for text in modules.values() for m in _MODULE.finditer(text))
    assert sum(generated.values()) > 100
    assert readable == generated


def _shape(module: str) -> tuple[tuple[str, int], ...]:
    """Items, and how often each occurs, with the number of its uses in the module in place of every name."""
    values = {name: (int(width), int(value, 16)) for name, width, value in _STATES.findall(module)}
    plain = re.sub(r"^\s*(//.*)?\n", "", _STATES.sub("", _ports_below(module)), flags=re.MULTILINE)
    plain = re.sub(r"\.(\\\S+ |\w+)\(", ".(", plain)
    texts = [_without_states(item.text, values) for item in parts_of(plain).items]
    uses = Counter(word.strip(" \\") for text in texts for word in _WORD.findall(text))
    shapes = Counter(_WORD.sub(lambda m: f"<{uses[m[0].strip(' ' + chr(92))]}>", text) for text in texts)
    return tuple(sorted((re.sub(r"\s*(\W)\s*", r"\1", shape), count) for shape, count in shapes.items()))


def _ports_below(module: str) -> str:
    """A module whose ports are declared in its header, with declarations in its body as Yosys writes them."""
    header, body = module.split(");\n", 1)
    if "// inputs" not in header and "// outputs" not in header:
        return module
    name, declarations = header.split("(\n", 1)
    lines, ports = "", []
    for attributes, kind, reg, rest in re.findall(
        r"((?:  \(\*.*\*\)\n)*)  (input|output)( reg)?(.*?),?\n", declarations + "\n"
    ):
        value = rest.partition(" = ")[0]
        ports.append(value.split()[-1])
        lines += f"  {kind}{value.replace(' signed', '')};\n{attributes}  {'reg' if reg else 'wire'}{rest};\n"
    return f"{name}({', '.join(ports)});\n{lines}{body}"


def _without_states(text: str, values: dict[str, tuple[int, int]]) -> str:
    def joined(match: re.Match[str]) -> str:
        width = number = 0
        for name in match[1].split(", "):
            width, number = width + values[name][0], number << values[name][0] | values[name][1]
        return f"{width}'h{number:0{-(-width // 4)}x}"

    text = _STATE_LIST.sub(joined, text) if values else text
    return re.sub(r"\bFSM_\w+", lambda m: f"{values[m[0]][0]}'h{values[m[0]][1]:x}" if m[0] in values else m[0], text)


def test_modules_with_macros_are_unchanged(modules: dict[str, str]) -> None:
    assert modules[PRODUCT_MODULE] in verilog_of(preset("nano"))
    assert "`endif" in modules[PRODUCT_MODULE]


def test_modules_have_plain_names_and_their_documentation(modules: dict[str, str]) -> None:
    assert next(iter(modules)) == "npu"
    assert all(re.fullmatch(r"[a-z]\w*", name) for name in modules)
    assert "// AXI4 and AXI4-Lite. `irq` is high while" in modules["npu"]
    assert modules["npu_engine_mac_array"].startswith("// ")
    undocumented = [name for name, text in modules.items() if not text.startswith("//")]
    assert not undocumented


def test_states_ports_and_comments_are_those_of_the_source(modules: dict[str, str]) -> None:
    fetch = modules["npu_engine_fetch"]
    assert "  localparam [1:0] FSM_ISSUE = 2'h3;\n" in fetch
    assert re.search(r"assign fsm_state_is_ISSUE = fsm_state == FSM_ISSUE;", fetch)
    assert "? FSM_IDLE : FSM_ISSUE;\n" in fetch
    assert "{ { FSM_FIND_SPACE, FSM_ASSEMBLE, FSM_CHECKING0, " in modules["npu_engine_dispatch"]
    assert "  input halt,\n" in fetch
    issue = fetch.index("  // issue: Issue bursts while words remain")
    assert (
        fetch.index("  // A halt withdraws no burst: VALID stays")
        > issue
        > fetch.index("  // store: The queue's memory")
    )
    assert "  reg [8:0] tail = 9'h000;\n" in fetch
