"""A SystemRDL compiler reads our register map as we mean it."""

from pathlib import Path

import pytest
from systemrdl import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode
from systemrdl.rdltypes import AccessType, OnWriteType

from intloom.hw.spec.regs import REGISTERS, Access, BitField, Register
from intloom.hw.spec.render_rdl import render_rdl


@pytest.fixture(scope="module")
def addrmap(tmp_path_factory: pytest.TempPathFactory) -> AddrmapNode:
    """The elaborated address map."""
    path = Path(tmp_path_factory.mktemp("rdl") / "intloom.rdl")
    path.write_text(render_rdl(), encoding="utf-8")
    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    return compiler.elaborate().top


def access_of(field: FieldNode) -> Access:
    """The access mode that the properties amount to."""
    modified = {OnWriteType.woclr: Access.W1C, OnWriteType.woset: Access.W1S}
    if field.get_property("onwrite") in modified:
        return modified[field.get_property("onwrite")]
    return {AccessType.r: Access.RO, AccessType.rw: Access.RW, AccessType.w: Access.WO}[field.get_property("sw")]


def test_registers_lie_where_the_table_says(addrmap: AddrmapNode):
    assert {r.inst_name: r.absolute_address for r in addrmap.registers()} == {r.name: r.offset for r in REGISTERS}


@pytest.mark.parametrize("row", REGISTERS, ids=lambda r: r.name)
def test_fields_have_their_bits_access_and_description(addrmap: AddrmapNode, row: Register):
    found = addrmap.get_child_by_name(row.name)
    expected = row.fields or (BitField("value", 0, 32, "The register's value."),)
    fields = {f.inst_name: f for f in found.fields()}
    assert found.get_property("desc") == row.doc
    assert set(fields) == {f.name for f in expected}
    for f in expected:
        node = fields[f.name]
        assert (node.low, node.width, access_of(node)) == (f.lsb, f.width, row.access)
        assert node.get_property("desc") == f.doc
        assert (node.get_property("reset") or 0) == row.reset >> f.lsb & ((1 << f.width) - 1)
