"""For every instruction field, instructions whose result depends on its highest bit.

A field that no function below lists has its bits inverted in a base instruction of its kind whose result shows them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from intloom.hw.spec.constant_check import block_crc
from intloom.hw.spec.fields import SCRATCH_BITS, ConvMode, Field
from intloom.hw.spec.isa import BY_KIND, INSTRUCTIONS, Instruction, InstructionSpec, Kind, Unit, make
from intloom.hw.spec.program_check import CRC_BITS
from intloom.hw.spec.regs import Cause
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from tests.sim.random_programs import extremes as x
from tests.sim.random_programs.depthwise_bits import DEPTHWISE, depthwise_steps
from tests.sim.random_programs.results import HIGH, LEGAL_BITS, Results

SPACE = 1 << SCRATCH_BITS
_PAIR = {"a_base": 1000, "b_base": 3000}
_WINDOW = {"a_base": 1000, "in_h": 16_000, "in_w": 16_000, "a_row": 1}
_VECTOR: dict[Kind, dict[str, int]] = {
    Kind.VCOPY: {"a_base": 1000, "byte_count": 4},
    Kind.VADD: {**_PAIR, "m1": 3, "m2": 2, "shift": 2},
    Kind.VMUL: {**_PAIR, "m1": 3, "m2": 3, "shift": 8},
    Kind.VMAX: _WINDOW,
    Kind.VAVG: {**_WINDOW, "m1": 3, "m2": 3, "shift": 2},
    Kind.VSOFTMAX: {"a_base": 1000, "last_bytes": 4},
    Kind.VNORM: {**_PAIR, "last_bytes": 4, "epsilon": 9},
}
_CONV = {"in_base": 1000, "in_h": 9, "in_w": 400, "in_row": 300, "weights": x.PLAIN, "out_w": 3}
_BORDER = {"zp_in": -100, "zp_out": 5, "ix0": -1, "in_plane": 1, "kernel_h": 2, "kernel_w": 2, "out_h": 2, "out_row": 3}
_BASES: dict[Kind, dict[str, int]] = {
    **{kind: base | {"out_w": 20} for kind, base in _VECTOR.items()},
    Kind.CONV: _CONV | _BORDER,
    Kind.VAVG: _VECTOR[Kind.VAVG] | {"out_w": 20, "ix0": -1, "kernel_w": 3},
    Kind.VDEPTHWISE: DEPTHWISE | {"zp_in": 9, "zp_out": -3, "ix0": -1},
}
"""For each kind an instruction whose result depends on most of its fields."""
_TIES = {"m1": 1, "m2": 1, "shift": 1, "even": 1, "out_w": 200}


@dataclass(frozen=True)
class Dependent:
    """The result differs if the bit is inverted."""

    bit: int
    instruction: Instruction


@dataclass(frozen=True)
class Faulty:
    """With the bit set, the accelerator stops with an error."""

    bit: int
    instruction: Instruction
    """Without the bit."""
    cause: Cause
    unit: Unit


@dataclass(frozen=True)
class Unused:
    """The bit has no effect."""

    bit: int
    instruction: Instruction
    """With the bit."""
    reason: str


Evidence = Dependent | Faulty | Unused
Key = tuple[Kind, str]


def required_bits(field: Field) -> set[int]:
    """Bits that must have evidence: the highest one that a legal value has, and the sign."""
    return {field.width - 1, field.width - 2} if field.signed else {field.maximum.bit_length() - 1}


def flipped(i: Instruction, name: str, bit: int) -> Instruction:
    """The instruction with one bit of a field inverted; of two factors that must be equal, both change."""
    names = ("m1", "m2") if i.spec.one_factor and name in ("m1", "m2") else (name,)
    width = i.spec.field(name).width
    raw = (i[name] ^ 1 << bit) & (1 << width) - 1
    value = raw - (1 << width) if i.spec.field(name).signed and raw >> width - 1 else raw
    return i.with_fields(**dict.fromkeys(names, value))


def _outputs(results: Results, kind: Kind) -> Iterator[tuple[str, Instruction]]:
    """The result tile."""
    base = _VECTOR[kind] if kind is not Kind.CONV else {k: v for k, v in _CONV.items() if k != "out_w"}
    blocks = "out_blocks" if kind is Kind.CONV else "blocks"
    if kind is Kind.CONV:
        inputs = {"in_row": 1, "in_h": 16_000, "in_w": 16_000}
        steps: dict[str, int] = {}
    else:
        inputs = {name: 1 for name in ("a_row", "b_row") if name in {f.name for f in BY_KIND[kind].fields}}
        steps = {"a_plane": 50}
    if kind is Kind.VCOPY:
        inputs["a_x"] = 1
    base = base | inputs
    most = {name: 1 << BY_KIND[kind].field(name).width - 1 for name in ("out_h", blocks)}
    yield "out_h", results.make(kind, **base, out_h=most["out_h"] + 1, out_row=1)
    yield (
        "out_w",
        results.make(kind, **base, out_w=(1 << BY_KIND[kind].field("out_w").width - 1) + (kind is not Kind.VNORM)),
    )
    yield blocks, results.make(kind, **base | dict.fromkeys(steps, 1), **{blocks: most[blocks] + 1}, out_plane=1)
    yield "out_plane", results.make(kind, 40, **base | steps, **{blocks: 2}, out_plane=SPACE - 40)
    yield "out_row", results.make(kind, **base, out_h=2, out_row=(1 << 15) + 7, out_base=results.rows())
    yield "out_x", results.make(kind, **base, out_w=3, out_x=11)
    yield "out_base", results.make(kind, **base, out_base=results.high())


def _operand(results: Results, kind: Kind, name: str) -> Iterator[tuple[str, Instruction]]:
    base = {k: v for k, v in _VECTOR[kind].items() if not k.startswith(f"{name}_")}
    yield f"{name}_base", results.make(kind, **base, **{f"{name}_base": HIGH + 5})
    first = {f"{name}_base": 1000}
    yield f"{name}_row", results.make(kind, **base, **first, out_h=2, out_row=2, **{f"{name}_row": (1 << 15) + 5})
    plane = {f"{name}_plane": SPACE - 30}
    yield f"{name}_plane", results.make(kind, **base, **first, blocks=2, out_plane=2, **plane)


def _affine(results: Results, kind: Kind) -> Iterator[tuple[str, Instruction]]:
    base = {k: v for k, v in _VECTOR[kind].items() if k not in ("m1", "m2", "shift")} | {"out_w": 20}
    shift = 33 if kind is Kind.VMUL else 28
    for positive, negative in ((1 << 23) + 98_765, -(1 << 24) + 4321), (-(1 << 24) + 5, (1 << 23) + 9):
        pair = (positive, positive) if kind is not Kind.VADD else (positive, negative)
        for name in ("m1", "m2"):
            yield name, results.make(kind, **base, m1=pair[0], m2=pair[1], shift=shift)
    factor = {"m1": 1 << 10, "m2": 1 << 10}
    for c in (-(1 << 43) + 12_345, (1 << 42) + 999):
        yield "c", results.make(kind, **base, **factor, c=c, shift=38)
    yield "shift", results.make(kind, **base, m1=-(1 << 23), m2=-(1 << 23), shift=32)
    yield "even", results.make(kind, **base | _TIES)


def _window(results: Results, kind: Kind) -> Iterator[tuple[str, Instruction]]:
    base = _VECTOR[kind]
    short = {k: v for k, v in base.items() if k not in ("in_h", "in_w", "a_base", "a_row")}
    near, column = {**short, "a_base": 1000, "a_row": 1}, {"kernel_h": 3}
    yield "in_h", results.make(kind, **near, **column, iy0=8195, in_h=8198)
    yield "in_w", results.make(kind, **near, kernel_w=3, ix0=8195, in_h=1, in_w=8198)
    for first in (-1, 8195):
        yield "iy0", results.make(kind, **near, **column, iy0=first, in_h=9000)
        yield "ix0", results.make(kind, **near, kernel_w=3, ix0=first, in_w=9000)
    yield "stride_h", results.make(kind, **base, stride_h=9, out_h=3, out_row=1)
    # The address of row 0 wraps; the rows that are read do not.
    yield "a_base", results.make(kind, **near | {"a_base": SPACE - 5000}, iy0=6000, in_h=9000)
    yield "a_row", results.make(kind, **base | {"a_row": (1 << 15) + 5}, kernel_h=2)
    yield "a_plane", results.make(kind, **base, a_plane=SPACE - 30, blocks=2, out_plane=2)


def _vector(results: Results) -> Iterator[tuple[Kind, str, Instruction]]:
    yield Kind.VTABLE, "a_base", make(Kind.VTABLE, a_base=HIGH + 9)
    yield Kind.VEXP, "a_base", make(Kind.VEXP, a_base=HIGH + 90)
    yield Kind.VEXP, "", make(Kind.VEXP, a_base=2000, part=1)
    yield Kind.VEXP, "part", make(Kind.VEXP, a_base=2500, part=2)
    for kind, base in _VECTOR.items():
        found = [*_outputs(results, kind)]
        if kind in (Kind.VMAX, Kind.VAVG):
            found += _window(results, kind)
        else:
            found += _operand(results, kind, "a")
        if kind in (Kind.VADD, Kind.VMUL):
            found += _operand(results, kind, "b")
        if kind in (Kind.VADD, Kind.VMUL, Kind.VAVG):
            found += _affine(results, kind)
        if kind is Kind.VNORM:
            found.append(("b_base", results.make(kind, **base | {"b_base": HIGH + 5})))
        if kind is Kind.VCOPY:
            found.append(("a_x", results.make(kind, **base, out_w=3, a_x=131)))
            found.append(("up_h", results.make(kind, **base, a_row=3, out_h=20, out_row=1, up_h=9)))
            found.append(("up_w", results.make(kind, **base, a_x=3, out_w=20, up_w=9)))
        yield from ((kind, name, instruction) for name, instruction in found)


def _convolutions(results: Results) -> Iterator[tuple[str, Instruction]]:
    def conv(margin: int = 0, **fields: int) -> Instruction:
        return results.make(Kind.CONV, margin, **_CONV | fields)

    half = SPACE // 2
    yield from _outputs(results, Kind.CONV)
    yield "in_base", conv(in_base=half + 1000, in_row_off=half + 5)
    yield "in_row_off", conv(in_base=half + 1000, in_row_off=half + 5)
    # Row iy0 lies outside, so only its successor's offset, behind the ring's end, is an address.
    yield "in_ring", conv(iy0=-1, kernel_h=2, in_row_off=half, in_row=20, in_ring=half + 5)
    yield "in_plane", conv(in_blocks=2, in_plane=SPACE - 100)
    yield "in_row", conv(kernel_h=2, in_row=(1 << 15) + 7)
    yield "in_block_step", conv(out_blocks=2, out_plane=4, in_block_step=SPACE - 100)
    yield "in_h", conv(in_h=8200, iy0=8195, in_row_off=9)
    yield "in_w", conv(in_w=8200, ix0=8195)
    for first in (-1, 8195):
        yield "iy0", conv(in_h=9000, iy0=first, kernel_h=2, in_row_off=(SPACE - 300) if first < 0 else 9)
        yield "ix0", conv(in_w=9000, ix0=first)
    yield "stride_h", conv(stride_h=4, out_h=2, out_row=3)
    yield "stride_w", conv(stride_w=4, out_w=2)
    yield "weights", conv(weights=x.WIDE.weight_words - 9)
    yield "", conv()
    yield "continue_sums", conv(continue_sums=1)
    yield "table", conv(weights=x.TABLE, table=2)
    residual = {"residual": 1, "res_base": 5000, "res_shift": 27}
    yield "residual", conv(weights=x.RESIDUAL, **residual)
    yield "res_shift", conv(weights=x.RESIDUAL, **residual | {"res_shift": 32})
    yield "res_base", conv(weights=x.RESIDUAL, **residual | {"res_base": HIGH + 5})
    two = {"out_blocks": 2, "out_plane": 4, "res_plane": SPACE - 30}
    yield "res_plane", conv(weights=x.RESIDUAL, **residual, **two)
    yield "res_row", conv(weights=x.RESIDUAL, **residual, out_h=2, out_row=4, res_row=(1 << 15) + 3)
    yield "res_even", conv(weights=x.TIES, **residual | {"res_shift": 1, "res_even": 1, "out_w": 100})


def _probe(results: Results, weights: int) -> Instruction:
    """A CONV whose results show four words of weights, from `weights` on."""
    return results.make(Kind.CONV, **_CONV | {"weights": (weights - x.WIDE.cols) % x.WIDE.weight_words})


def _loads(results: Results) -> Iterator[tuple[str, Instruction]]:
    """Those into the weight memory come last, since they change the constants of convolutions."""
    yield "dram", results.make(Kind.LOAD, dram=x.HIGH_SOURCE + 9, n0=5)
    two = {"dram": x.LOW_SOURCE, "n0": 3}
    yield "dram_s1", results.make(Kind.LOAD, **two, n1=2, local_s1=3, dram_s1=1 << 31)
    yield "dram_s2", results.make(Kind.LOAD, **two, n2=2, local_s2=3, dram_s2=1 << 31)
    yield "local", results.make(Kind.LOAD, **two, local=results.high())
    yield "local_s1", results.make(Kind.LOAD, 9, **two, n1=2, dram_s1=3, local_s1=SPACE - 5)
    yield "local_s2", results.make(Kind.LOAD, 9, **two, n2=2, dram_s2=3, local_s2=SPACE - 5)
    many = {"target": 1, "local": 3}
    yield "n1", make(Kind.LOAD, **many, dram=x.LOW_SOURCE + 7, n1=(1 << 15) + 5, dram_s1=1, local_s1=1)
    yield "", _probe(results, 3 + (1 << 15) + 5)
    yield "n2", make(Kind.LOAD, **many, dram=x.LOW_SOURCE + 99, n2=(1 << 15) + 5, dram_s2=1, local_s2=1)
    yield "", _probe(results, 3 + (1 << 15) + 5)
    yield "target", make(Kind.LOAD, target=1, local=1000, dram=x.LOW_SOURCE, n0=20)
    yield "", _probe(results, 1000)
    yield "n0", make(Kind.LOAD, **many, dram=x.HIGH_SOURCE, n0=(1 << 19) + 2222)
    yield "", _probe(results, 3 + 2222)
    # A word of zeros is the code of eight words of zeros.
    yield "coded", make(Kind.LOAD, **many, coded=(1 << 15) + 1, n0=8 * ((1 << 15) + 1))
    yield "", _probe(results, 3)


def _stores(results: Results) -> Iterator[tuple[str, Instruction]]:
    def store(first: int, words: int = 8, **fields: int) -> Instruction:
        return make(Kind.STORE, dram=results.target(first, words), **{"local": 1000, **fields})

    two = {"n0": 3}
    yield "dram", store(x.HIGH_TARGET, n0=5)
    yield "dram_s1", store(x.LOW_TARGET, **two, n1=2, local_s1=3, dram_s1=1 << 31)
    results.target(x.HIGH_TARGET, 8)
    yield "dram_s2", store(x.LOW_TARGET, **two, n2=2, local_s2=3, dram_s2=1 << 31)
    yield "local", store(x.LOW_TARGET, **two, local=HIGH + 3)
    yield "local_s1", store(x.LOW_TARGET, **two, n1=2, dram_s1=3, local_s1=SPACE - 5)
    yield "local_s2", store(x.LOW_TARGET, **two, n2=2, dram_s2=3, local_s2=SPACE - 5)
    words = (1 << 15) + 5
    yield "n1", store(x.LOW_TARGET, words, n1=words, dram_s1=1, local_s1=1)
    yield "n2", store(x.LOW_TARGET, words, n2=words, dram_s2=1, local_s2=1)
    yield "n0", store(x.LOW_TARGET, (1 << 17) + 5, n0=(1 << 17) + 5)


def _long_words() -> Iterator[tuple[Kind, str, Instruction]]:
    """Fields that count the bytes of a word, or its pixels."""
    copy = {"a_base": 3, "out_w": 3, "out_base": 100}
    yield Kind.VCOPY, "rotate", make(Kind.VCOPY, **copy, rotate=17, byte_count=32)
    yield Kind.VCOPY, "first_byte", make(Kind.VCOPY, **copy | {"out_base": 110}, first_byte=17, byte_count=9)
    yield Kind.VCOPY, "byte_count", make(Kind.VCOPY, **copy | {"out_base": 120}, byte_count=32)
    for part in range(EXPONENTIAL_BYTES):
        yield Kind.VEXP, "", make(Kind.VEXP, a_base=20 * part, part=part)
    yield Kind.VSOFTMAX, "last_bytes", make(Kind.VSOFTMAX, a_base=3, out_w=3, out_base=125, last_bytes=32)
    yield Kind.VNORM, "last_bytes", make(Kind.VNORM, a_base=3, b_base=9, out_w=3, out_base=150, last_bytes=32)
    lane = {"in_h": 1, "in_w": 9, "out_w": 2, "in_base": 3, "out_base": 130, "weights": x.PLAIN}
    yield Kind.CONV, "out_lane", make(Kind.CONV, **lane, out_lane=20)
    packed = lane | {"in_w": 60, "out_base": 140}
    yield Kind.CONV, "mode", make(Kind.CONV, **packed, mode=ConvMode.PACKED, ix0=5, kernel_w=2)


def wide_program() -> list[tuple[str, Instruction]]:
    """Instructions for `WIDE`, in the order of the program, each with the field it is for (or none)."""
    results = Results()
    found = [(name, instruction) for _, name, instruction in _vector(results)]
    found += [*depthwise_steps(results), *_convolutions(results)]
    listed = {(i.kind, name) for name, i in (*found, *long_program())}
    return [*found, *_unlisted(results, listed), *_loads(results), *_stores(results)]


def _unlisted(results: Results, listed: set[Key]) -> Iterator[tuple[str, Instruction]]:
    """The base instruction of each kind with the highest bits of every other field inverted."""
    for kind, base in _BASES.items():
        for field in BY_KIND[kind].body:
            for bit in sorted(required_bits(field)) if (kind, field.name) not in listed else ():
                inverted = flipped(make(kind, **base), field.name, bit)
                values = {f.name: inverted[f.name] for f in BY_KIND[kind].body if f.name != "out_base"}
                yield field.name, results.make(kind, **values)


def long_program() -> list[tuple[str, Instruction]]:
    """Instructions for `LONG`."""
    return [(name, instruction) for _, name, instruction in _long_words()]


_PAST_SCRATCH = range(LEGAL_BITS, SCRATCH_BITS)
_ADDRESSES: dict[Kind, tuple[str, ...]] = {
    Kind.LOAD: ("local",),
    Kind.STORE: ("local", "n0"),
    Kind.CONV: ("out_base", "res_base"),
    Kind.VTABLE: ("a_base",),
    Kind.VEXP: ("a_base",),
    Kind.VCOPY: ("out_base", "a_base"),
    Kind.VADD: ("out_base", "a_base", "b_base"),
    Kind.VMUL: ("out_base", "a_base", "b_base"),
    Kind.VMAX: ("out_base",),
    Kind.VAVG: ("out_base",),
    Kind.VSOFTMAX: ("out_base", "a_base"),
    Kind.VNORM: ("out_base", "a_base", "b_base"),
    Kind.VDEPTHWISE: ("out_base", "b_base"),
}
"""Fields whose highest bits only an address past the scratchpad needs."""
_SHORT: dict[Kind, dict[str, int]] = {
    Kind.STORE: {"local": x.WIDE.scratch_words - 8},
    Kind.CONV: {"in_h": 3, "in_w": 3},
    Kind.VCOPY: {"byte_count": 4},
    Kind.VMAX: {"in_h": 3, "in_w": 3},
    Kind.VAVG: {"in_h": 3, "in_w": 3},
}


def faulty() -> Iterator[tuple[str, Faulty]]:
    """Address bits beyond the largest scratchpad, and the CRC of a word."""
    load = make(Kind.LOAD, crc=block_crc(bytes(x.WIDE.word_bytes)))
    yield "crc", Faulty(CRC_BITS - 1, load, Cause.CONSTANT_CHECK, Unit.LOAD)
    for kind, names in _ADDRESSES.items():
        for name in names:
            fields = _SHORT.get(kind, {}) | ({"residual": 1} if name == "res_base" else {})
            for bit in _PAST_SCRATCH:
                yield name, Faulty(bit, make(kind, **fields), Cause.SCRATCH_RANGE, BY_KIND[kind].unit)


def unused() -> Iterator[tuple[str, Unused]]:
    """Bits that hardware ignores."""
    reason = "the weight memory is a ring of fewer words"
    for bit in _PAST_SCRATCH:
        yield "weights", Unused(bit, make(Kind.CONV, **_CONV, out_base=9000 + 16 * bit), reason)


ALL_FIELDS: tuple[tuple[InstructionSpec, Field], ...] = tuple((s, f) for s in INSTRUCTIONS for f in s.fields)
