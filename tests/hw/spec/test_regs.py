"""The register map: no overlaps, fields in and out, and every parameter readable from the capability registers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import EncodingError
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import (
    ADDRESS_BITS,
    CAPABILITIES,
    REGISTER_BYTES,
    REGISTERS,
    Cause,
    Register,
    Stall,
    capability_values,
    pack,
    register,
    stall_counter,
    unpack,
)
from tests.hw.spec.strategies import hardware

WITH_FIELDS = [r for r in REGISTERS if r.fields]


def test_registers_are_aligned_apart_and_inside_the_address_space():
    offsets = [r.offset for r in REGISTERS]
    assert len(set(offsets)) == len(offsets) == len({r.name for r in REGISTERS})
    assert all(o % REGISTER_BYTES == 0 and 0 <= o < 1 << ADDRESS_BITS for o in offsets)
    assert offsets == sorted(offsets)


@pytest.mark.parametrize("row", WITH_FIELDS, ids=lambda r: r.name)
def test_fields_are_apart_and_inside_the_register(row: Register):
    bits = [b for f in row.fields for b in range(f.lsb, f.lsb + f.width)]
    assert len(set(bits)) == len(bits)
    assert max(bits) < 8 * REGISTER_BYTES


def test_codes_fit_their_fields():
    fields = {f.name: f for f in register("STATUS").fields}
    assert max(Cause) < 1 << fields["cause"].width
    assert max(Unit) < 1 << fields["unit"].width


@given(st.sampled_from(WITH_FIELDS), st.data())
def test_unpack_undoes_pack(row: Register, data: st.DataObject):
    values = {f.name: data.draw(st.integers(0, (1 << f.width) - 1)) for f in row.fields}
    assert unpack(row.name, pack(row.name, **values)) == values


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(EncodingError, match=r"^STATUS\.cause must be from 0 to 31, not 32$"):
        pack("STATUS", cause=32)
    with pytest.raises(EncodingError, match=r"^STATUS\.busy must be from 0 to 1, not -1$"):
        pack("STATUS", busy=-1)
    with pytest.raises(EncodingError, match="^CONTROL has no field 'stop': it has start, reset$"):
        pack("CONTROL", stop=1)
    with pytest.raises(EncodingError, match="^register must be one of MAGIC, .*, not 'CTRL'$"):
        register("CTRL")


@given(hardware())
def test_every_parameter_fits_its_register(params: HardwareParams):
    values = capability_values(params)
    assert len(values) == len(CAPABILITIES)
    assert all(0 <= v < 1 << 32 for v in values)


def test_every_unit_has_a_counter_for_every_stall():
    assert len({register(stall_counter(u, s)).offset for u in QUEUED_UNITS for s in Stall}) == len(QUEUED_UNITS) * len(
        Stall
    )


def test_every_register_is_documented():
    assert all(r.doc.endswith(".") and all(f.doc.endswith(".") for f in r.fields) for r in REGISTERS)
