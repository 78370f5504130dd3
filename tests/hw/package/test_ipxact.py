"""`component.xml`: the order of elements that IEEE 1685-2014 demands, and the contents that other tools read."""

from xml.etree import ElementTree as ET

import pytest

from intloom.hw.package.ipxact import NAMESPACE, render_ipxact
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import REGISTERS

ORDER = {
    "component": "vendor library name version busInterfaces addressSpaces memoryMaps model fileSets "
    "description parameters",
    "busInterface": "name busType abstractionTypes master slave",
    "abstractionType": "abstractionRef portMaps",
    "portMap": "logicalPort physicalPort",
    "addressSpace": "name range width",
    "memoryMap": "name addressBlock addressUnitBits",
    "addressBlock": "name baseAddress range width register",
    "register": "name description addressOffset size access field",
    "field": "name description bitOffset resets bitWidth access modifiedWriteValue",
    "model": "views instantiations ports",
    "view": "name componentInstantiationRef",
    "componentInstantiation": "name language moduleName fileSetRef",
    "port": "name wire",
    "wire": "direction vectors",
    "vector": "left right",
    "fileSet": "name file",
    "file": "name fileType",
    "parameter": "name value",
}
"""Children of each element in the order of the standard's schema, as far as this component uses them."""


def _name(element: ET.Element) -> str:
    namespace, _, name = element.tag.partition("}")
    assert namespace == "{" + NAMESPACE
    return name


@pytest.fixture(scope="module")
def component() -> ET.Element:
    return ET.fromstring(render_ipxact(preset("small"), ["npu.v"], "1.0"))


def test_children_have_the_order_of_the_schema(component: ET.Element) -> None:
    for element in component.iter():
        names = [_name(child) for child in element]
        order = ORDER.get(_name(element), "").split()
        if order:
            assert [n for n in order for m in names if m == n] == names, _name(element)
        else:
            assert len(set(names)) <= 1, _name(element)


def _texts(component: ET.Element, path: str) -> list[str]:
    return [e.text or "" for e in component.iterfind(path, {"": NAMESPACE})]


def test_registers_ports_and_buses_are_complete(component: ET.Element) -> None:
    assert _texts(component, ".//register/name") == [r.name for r in REGISTERS]
    offsets = [int(text.removeprefix("'h"), 16) for text in _texts(component, ".//addressOffset")]
    assert offsets == [r.offset for r in REGISTERS]
    ports = _texts(component, "./model/ports/port/name")
    mapped = _texts(component, ".//physicalPort/name")
    rest = {"rst", "irq", "trace_started", "trace_done"}
    assert sorted({*mapped, *rest}) == sorted(ports)
    assert {"AWADDR", "WSTRB", "RLAST", "ACLK"} <= set(_texts(component, ".//logicalPort/name"))


def test_fields_lie_in_their_register_without_overlap(component: ET.Element) -> None:
    for register in component.iterfind(".//register", {"": NAMESPACE}):
        bits: list[int] = []
        for field in register.iterfind("field", {"": NAMESPACE}):
            low, width = (int(field.findtext(n, "", {"": NAMESPACE})) for n in ("bitOffset", "bitWidth"))
            bits += range(low, low + width)
        assert len(bits) == len(set(bits))
        assert max(bits) < 32


def test_attributes_are_those_of_the_schema_without_namespace(component: ET.Element) -> None:
    references = {"vendor", "library", "name", "version"}
    allowed = {"busType": references, "abstractionRef": references, "parameter": {"parameterId"}}
    allowed |= {name: {name} for name in ("addressSpaceRef", "memoryMapRef")}
    assert all(set(e.attrib) == allowed.get(_name(e), set()) for e in component.iter())


def test_references_have_targets(component: ET.Element) -> None:
    for kind, target in (("addressSpaceRef", "addressSpace"), ("memoryMapRef", "memoryMap")):
        wanted = {e.get(kind) for e in component.iter(f"{{{NAMESPACE}}}{kind}")}
        assert wanted == set(_texts(component, f".//{target}/name"))
