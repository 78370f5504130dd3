"""IP-XACT (IEEE 1685-2014) description of the accelerator: bus interfaces, ports, registers, files, parameters."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, register_namespace, tostring

from amaranth.hdl import Shape
from amaranth.lib.wiring import Out

from intloom.hw.bus import axi4, axi4_lite
from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import ADDRESS_BITS, REGISTERS, Access, BitField, Register

NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_ACCESS = {
    Access.RO: "read-only",
    Access.RW: "read-write",
    Access.W1C: "read-write",
    Access.W1S: "read-write",
    Access.WO: "write-only",
}
_MODIFIED = {Access.W1C: "oneToClear", Access.W1S: "oneToSet"}
_SPACE, _MAP = "memory", "registers"
_REGISTER_BITS = 32


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _add(parent: Element, kind: str, text: object = None, /, **attributes: str) -> Element:
    """A new child element. The schema has attributes without a namespace."""
    child = SubElement(parent, _tag(kind), attributes)
    if text is not None:
        child.text = str(text)
    return child


def _typed(parent: Element, kind: str, library: str, name: str, version: str) -> None:
    _add(parent, kind, vendor="amba.com", library=library, name=name, version=version)


def _port_map(maps: Element, logical: str, physical: str) -> None:
    entry = _add(maps, "portMap")
    _add(_add(entry, "logicalPort"), "name", logical)
    _add(_add(entry, "physicalPort"), "name", physical)


def _bus(parent: Element, prefix: str, kind: str, channels: Iterable[str], ports: Iterable[str]) -> Element:
    """An AXI interface with all its ports."""
    bus = _add(parent, "busInterface")
    _add(bus, "name", prefix)
    _typed(bus, "busType", "AMBA4", kind, "r0p0_0")
    abstraction = _add(_add(bus, "abstractionTypes"), "abstractionType")
    _typed(abstraction, "abstractionRef", "AMBA4", f"{kind}_rtl", "r0p0_0")
    maps = _add(abstraction, "portMaps")
    starts = tuple(f"{prefix}_{channel}" for channel in channels)
    for port in ports:
        if port.startswith(starts):
            _port_map(maps, port.removeprefix(f"{prefix}_").upper(), port)
    _port_map(maps, "ACLK", "clk")
    return bus


def _bus_interfaces(root: Element, ports: list[str]) -> None:
    buses = _add(root, "busInterfaces")
    master = _add(_bus(buses, "m_axi", "AXI4", axi4.CHANNELS, ports), "master")
    _add(master, "addressSpaceRef", addressSpaceRef=_SPACE)
    slave = _add(_bus(buses, "s_axi", "AXI4-Lite", axi4_lite.CHANNELS, ports), "slave")
    _add(slave, "memoryMapRef", memoryMapRef=_MAP)


def _field(parent: Element, register: Register, field: BitField) -> None:
    element = _add(parent, "field")
    _add(element, "name", field.name)
    _add(element, "description", field.doc)
    _add(element, "bitOffset", field.lsb)
    if register.reset or register.access is not Access.RO:
        reset = _add(_add(element, "resets"), "reset")
        _add(reset, "value", f"'h{register.reset >> field.lsb & ((1 << field.width) - 1):x}")
    _add(element, "bitWidth", field.width)
    _add(element, "access", _ACCESS[register.access])
    if register.access in _MODIFIED:
        _add(element, "modifiedWriteValue", _MODIFIED[register.access])


def _memory_map(root: Element) -> None:
    memory_map = _add(_add(root, "memoryMaps"), "memoryMap")
    _add(memory_map, "name", _MAP)
    block = _add(memory_map, "addressBlock")
    for name, value in (("name", _MAP), ("baseAddress", "'h0"), ("range", f"'h{1 << ADDRESS_BITS:x}")):
        _add(block, name, value)
    _add(block, "width", _REGISTER_BITS)
    for register in REGISTERS:
        element = _add(block, "register")
        for name, value in (("name", register.name), ("description", register.doc)):
            _add(element, name, value)
        _add(element, "addressOffset", f"'h{register.offset:x}")
        _add(element, "size", _REGISTER_BITS)
        _add(element, "access", _ACCESS[register.access])
        for field in register.fields or (BitField("value", 0, _REGISTER_BITS, "The register's value."),):
            _field(element, register, field)
    _add(memory_map, "addressUnitBits", 8)


def _model(root: Element, params: HardwareParams) -> None:
    model = _add(root, "model")
    view = _add(_add(model, "views"), "view")
    _add(view, "name", "rtl")
    _add(view, "componentInstantiationRef", "verilog")
    instance = _add(_add(model, "instantiations"), "componentInstantiation")
    _add(instance, "name", "verilog")
    _add(instance, "language", "verilog")
    _add(instance, "moduleName", TOP_NAME)
    _add(_add(instance, "fileSetRef"), "localName", "rtl")
    ports = _add(model, "ports")
    given = {"clk": (False, 1), "rst": (False, 1)}
    given |= {n: (m.flow is Out, Shape.cast(m.shape).width) for n, m in npu_members(params).items()}
    for name, (out, width) in given.items():
        port = _add(ports, "port")
        _add(port, "name", name)
        wire = _add(port, "wire")
        _add(wire, "direction", "out" if out else "in")
        if width > 1:
            vector = _add(_add(wire, "vectors"), "vector")
            _add(vector, "left", width - 1)
            _add(vector, "right", 0)


def _files(root: Element, sources: Iterable[str]) -> None:
    files = _add(_add(root, "fileSets"), "fileSet")
    _add(files, "name", "rtl")
    for source in sources:
        file = _add(files, "file")
        _add(file, "name", source)
        _add(file, "fileType", "verilogSource")


def render_ipxact(params: HardwareParams, sources: Iterable[str], version: str) -> str:
    """Render `component.xml`; parameters are constants of this component, since the Verilog is made for them."""
    register_namespace("ipxact", NAMESPACE)
    root = Element(_tag("component"))
    for name, value in (("vendor", "intloom"), ("library", "ip"), ("name", TOP_NAME), ("version", version)):
        _add(root, name, value)
    _bus_interfaces(root, list(npu_members(params)))
    space = _add(_add(root, "addressSpaces"), "addressSpace")
    _add(space, "name", _SPACE)
    _add(space, "range", f"'h{1 << params.axi_addr_bits:x}")
    _add(space, "width", params.axi_data_bits)
    _memory_map(root)
    _model(root, params)
    _files(root, sources)
    _add(root, "description", f"Int8 neural network accelerator, {params.rows} x {params.cols}")
    parameters = _add(root, "parameters")
    for key, setting in params.to_dict().items():
        parameter = _add(parameters, "parameter", parameterId=key)
        _add(parameter, "name", key)
        _add(parameter, "value", f'"{setting}"' if isinstance(setting, str) else int(setting))
    indent(root)
    text: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
