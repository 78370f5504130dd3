"""The memory page has one rectangle per extent, within the drawing, and needs no other file."""

import xml.etree.ElementTree as ET

import pytest

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import memory_map, peak_words
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.report.memory_page import memory_page
from intloom.sim.regress.graphs import GraphMaker


@pytest.fixture(scope="module")
def program():
    maker = GraphMaker(2)
    x = maker.conv(maker.input(4, 20, 20), 8, 3)
    return compile_graph(maker.graph(maker.conv(maker.max_pool(x, 3, pad=1), 4, 1)), preset("nano"))


def drawings(page):
    body = page[page.index("<svg") :]
    parts = body.split("<svg")[1:]
    return [ET.fromstring("<svg" + part[: part.index("</svg>")] + "</svg>") for part in parts]


def test_every_extent_is_drawn_inside_its_memory(program):
    page = memory_page([program])
    extents = memory_map(program)
    svgs = drawings(page)
    for svg, memory in zip(svgs, (Memory.SCRATCH, Memory.WEIGHT, Memory.DRAM), strict=True):
        rects = svg.findall("rect")
        assert len(rects) == sum(e.memory is memory for e in extents) > 0
        _, _, width, height = (float(n) for n in svg.get("viewBox").split())
        for rect in rects:
            x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
            assert x > -1 and x + w < width + 1 and y > -1 and y + h < height + 1
    kib = peak_words(program, Memory.SCRATCH) * program.params.word_bytes / 1024
    assert f"at most {kib:,.0f} KiB in use at once" in page


def test_tensors_that_share_memory_are_drawn_while_they_live(program):
    labels = [e for e in memory_map(program) if e.memory is Memory.DRAM]
    shared = [e for e in labels if e.last - e.first < len(program.instructions)]
    assert {e.label for e in shared} == {p.name for p in program.tensors if p.role == "shared"}
    for extent in shared:
        tensor = program.tensor(extent.label)
        assert (extent.start, extent.stop) == (tensor.address, tensor.address + tensor.words)
        assert extent.first <= tensor.first_instruction < extent.last


def test_the_page_needs_nothing_else(program):
    page = memory_page([program, program])
    assert "Region 2 of 2" in page
    assert "://" not in page
    assert "src=" not in page and "url(" not in page
