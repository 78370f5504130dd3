"""The manual pages say everything that the tables say, and the diagrams are drawn to scale."""

import re

import pytest

from intloom.hw.spec import timing
from intloom.hw.spec.bit_diagram import BITS_A_LINE, bit_diagram
from intloom.hw.spec.isa import INSTRUCTIONS, InstructionSpec
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import REGISTERS, Cause, Stall
from intloom.hw.spec.render_manual import render_isa, render_parameters, render_registers


@pytest.mark.parametrize("spec", INSTRUCTIONS, ids=lambda s: s.kind)
def test_reading_the_diagram_gives_the_fields_back(spec: InstructionSpec):
    widths: dict[str, int] = {}
    for line in re.findall(r"^ *\d+ \|(.*)\|$", bit_diagram(spec), re.MULTILINE):
        cells = line.split("|")
        assert sum(len(c) + 1 for c in cells) == 3 * BITS_A_LINE
        for cell in reversed(cells):
            label = cell.strip()
            name = spec.fields[int(label)].name if label.isdigit() and label != "0" else label
            widths[name] = widths.get(name, 0) + (len(cell) + 1) // 3
    widths.pop("zero", None)
    widths.pop("0", None)
    widths.pop("check", None)
    assert list(widths.items()) == [(f.name, f.width) for f in spec.fields]


def test_the_instruction_page_tells_every_field():
    page = render_isa()
    for spec in INSTRUCTIONS:
        section = page.split(f"\n## {spec.kind}\n")[1].split("\n## ")[0]
        assert spec.doc in section
        for f in spec.fields:
            low = spec.offsets[f.name]
            assert f"| `{f.name}` | {low + f.width - 1}:{low} |" in section
            assert f.doc in section


def test_the_register_page_tells_every_register_cause_and_stall():
    page = render_registers()
    for r in REGISTERS:
        assert f"| `0x{r.offset:03x}` | `{r.name}` | {r.access} |" in page
        assert all(f"| `{f.name}` | {f.lsb + f.width - 1}:{f.lsb} | {f.doc} |" in page for f in r.fields)
    for member in (*Cause, *Stall):
        # Code, name, and a sentence.
        assert re.search(rf"^\| {int(member)} \| `{member.name}` \| [A-Z].*\. \|$", page, re.MULTILINE), member


def test_the_parameter_page_tells_every_parameter():
    page = render_parameters()
    for name, f in HardwareParams.__dataclass_fields__.items():
        assert re.search(rf"^\| `{name}` \| .*{re.escape(f.metadata['doc'])} \|$", page, re.MULTILINE), name


def test_the_parameters_page_lists_every_latency() -> None:
    page = render_parameters()
    names = [name for name, value in vars(timing).items() if isinstance(value, int | float) and name.isupper()]
    assert len([n for n in names if not n.startswith("_")]) > 20
    for name in names:
        assert name.startswith("_") or f"| `{name}` | {getattr(timing, name)} |" in page
