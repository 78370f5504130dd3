"""Random legal instructions and parameters for property tests."""

from hypothesis import strategies as st

from intloom.hw.spec.isa import INSTRUCTIONS, Field, Instruction, InstructionSpec, make
from intloom.hw.spec.params import DATA_BITS, PRESETS, HardwareParams


def legal(field: Field) -> st.SearchStrategy[int]:
    """Any legal value, its limits more often than others."""
    limits = st.sampled_from([field.minimum, field.maximum, field.default])
    return st.one_of(limits, st.integers(field.minimum, field.maximum))


def instructions_of(spec: InstructionSpec) -> st.SearchStrategy[Instruction]:
    """Any legal instruction of one kind."""
    values = st.fixed_dictionaries({}, optional={f.name: legal(f) for f in spec.fields[1:]})
    return values.map(lambda v: make(spec.kind, **v))


def instructions() -> st.SearchStrategy[Instruction]:
    """Any legal instruction."""
    return st.one_of([instructions_of(s) for s in INSTRUCTIONS])


def powers(low: int, high: int) -> st.SearchStrategy[int]:
    """Powers of two from low to high."""
    return st.sampled_from([1 << n for n in range(high.bit_length()) if low <= 1 << n <= high])


@st.composite
def hardware(draw: st.DrawFn) -> HardwareParams:
    """Any consistent hardware, not only the presets."""
    rows, cols = draw(powers(4, 32)), draw(powers(4, 64))
    match = draw(st.sampled_from(["ort", "exact"]))
    return PRESETS["large"].replace(
        rows=rows,
        cols=cols,
        lanes=draw(powers(1, min(rows, cols))),
        strip=draw(powers(max(16, cols), 256)),
        scratch_kib=draw(powers(4, 1024)),
        scratch_banks=draw(powers(2, 16)),
        weight_kib=draw(powers(16, 1024)),
        axi_data_bits=draw(st.sampled_from(DATA_BITS)),
        axi_addr_bits=draw(st.integers(32, 64)),
        # At least four words of 32 bytes on a port of 4, at most 4 KiB.
        axi_burst=draw(powers(32, 128)),
        axi_outstanding=draw(powers(1, 32)),
        mantissa_bits=24 if match == "ort" else draw(st.integers(8, 24)),
        acc_bits=draw(st.integers(20, 32)),
        match=match,
        queue_depth=draw(powers(2, 64)),
        vector_multiply=draw(st.booleans()),
        vector_average=draw(st.booleans()),
        vector_lanes=draw(powers(1, rows)),
        lut_products=draw(st.integers(0, rows * cols)),
        trace=draw(st.booleans()),
    )
