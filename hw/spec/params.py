"""Hardware parameters: the values that a user chooses, their checks, and the derived sizes.

The fields of `HardwareParams` are the chosen values; its properties are the sizes that hardware, compiler and simulator
share.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import gcd
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from intloom.common.errors import FileFormatError, ParameterError
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, RoundingMode
from intloom.hw.spec.formats import CHANNEL_BYTES, RESIDUAL_BYTES, TABLE_BYTES
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.vector_depthwise import TAPS


def _doc(text: str, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field with its description in the manual."""
    return (
        field(default=default, metadata={"doc": text})
        if default is not dataclasses.MISSING
        else field(metadata={"doc": text})
    )


@dataclass(frozen=True, kw_only=True)
class HardwareParams:
    """Parameters of one accelerator. Frozen; invalid or contradictory values raise `ParameterError` at construction."""

    rows: int = _doc(
        "Input-channel lanes of the MAC array, and bytes in a word of every memory. A power of two, 4 to 32."
    )
    cols: int = _doc("Output-channel lanes of the MAC array. A power of two, 4 to 64.")
    lanes: int = _doc(
        "Parallel requantizer lanes; an output pixel is read out of the accumulators in cols/lanes cycles. Divides "
        "rows and cols."
    )
    strip: int = _doc(
        "Accumulators in a bank: the longest strip of pixels that is multiplied by one weight tile. A power of two, 16 "
        "to 256."
    )
    scratch_kib: int = _doc("Scratchpad for activations, KiB. A power of two, 4 to 1024.")
    scratch_banks: int = _doc("Scratchpad banks, interleaved by word. A power of two, 2 to 16.", 4)
    weight_kib: int = _doc("Weight memory, KiB: a circular buffer. A power of two, 2 to 1024.")
    axi_data_bits: int = _doc(
        "AXI4 data width: 32, 64, 128 or 256; 0 means 8*rows, one word per beat. On a narrower port a word takes "
        "several beats, on a wider one a beat carries one word.",
        0,
    )
    axi_addr_bits: int = _doc("AXI4 address width, 32 to 64.", 40)
    axi_burst: int = _doc(
        "Longest AXI burst in beats. A power of two, 4 to 256; at least 4 words, and at most 4 KiB.", 64
    )
    axi_outstanding: int = _doc("Outstanding AXI bursts in each direction. A power of two, 1 to 32.", 16)
    axi_prot: int = _doc(
        "AxPROT of all accesses, 0 to 7. Bit 1 is 0 for secure accesses. 2: data, non-secure, unprivileged.", 2
    )
    axi_cache: int = _doc("AxCACHE of all accesses, 0 to 15. 3: normal memory, not cacheable, bufferable.", 3)
    axi_qos: int = _doc("AxQOS of all accesses, 0 to 15.", 0)
    axi_user_bits: int = _doc("Width of AxUSER, 0 to 32; 0: the accelerator has no such ports.", 0)
    axi_user: int = _doc("AxUSER of all accesses; it must fit axi_user_bits.", 0)
    register_errors: bool = _doc(
        "The AXI4-Lite port answers SLVERR to accesses where no register is, and to writes of read-only registers; "
        "else OKAY.",
        True,
    )
    mantissa_bits: int = _doc(
        "Significant bits of a requantization scale, 8 to 24; 24 represents an fp32 scale exactly.", 24
    )
    acc_bits: int = _doc("Width of an accumulator, 20 to 32.", 32)
    match: RoundingMode = _doc(
        "Rounding mode of the requantizers: ort (as fp32 arithmetic) or exact (one rounding).", RoundingMode.ORT
    )
    queue_depth: int = _doc("Depth of each unit's instruction queue. A power of two, 2 to 64.", 8)
    vector_multiply: bool = _doc("The vector unit can multiply tensors (VMUL).", True)
    vector_average: bool = _doc("The vector unit can average windows (VAVG).", True)
    vector_lanes: int = _doc(
        "Bytes that the vector unit processes per cycle; a word takes rows/vector_lanes cycles. Divides rows; 0 means "
        "rows.",
        0,
    )
    lut_products: int = _doc(
        "Int8 products built from LUTs instead of DSP blocks in FPGA synthesis: first the 5*rows of VDEPTHWISE, then "
        "those of the array. A larger number means all.",
        0,
    )
    trace: bool = _doc("The accelerator has a trace port that reports the start and end of every instruction.", True)
    clock_gating: bool = _doc("Components without work have their clock stopped; cycles are the same either way.", True)
    vector_softmax: bool = _doc("The vector unit can compute a Softmax (VEXP, VSOFTMAX).", False)
    vector_norm: bool = _doc(
        "The vector unit can compute a layer normalization (VNORM); false if vector_lanes is less than rows/4.", False
    )
    weight_sums: bool = _doc(
        "The MAC array can subtract zp_in times the sum of its weights (CONV field subtract_zp_in): products of two "
        "tensors.",
        True,
    )
    vector_depthwise: bool = _doc(
        "The vector unit can compute depthwise convolutions (VDEPTHWISE), while the array works; false if vector_lanes "
        "is less than rows/4.",
        False,
    )
    memory_parity: bool = _doc(
        "The scratchpad has a parity bit per byte, the weight memory one per word: a word with a flipped bit stops the "
        "program with an error. Cycles are the same either way.",
        False,
    )
    word_code: bool = _doc(
        "The load unit can decode words (LOAD field coded): weights take fewer words in memory, without loss.", False
    )
    constant_check: bool = _doc(
        "The load unit can check the CRC of the words that it reads (LOAD field crc): flipped bits in constants stop "
        "the program with an error. Cycles are the same either way.",
        False,
    )
    multiplier_bits: int = _doc(
        "Bits of the wider operand of the FPGA's multipliers, the other one has 18: 18 (ECP5, Gowin) or 25 (7 series, "
        "UltraScale+). With 25, two products of a pixel share a multiplier. Cycles are the same either way.",
        18,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", _as_match(self.match))
        _check_types(self)
        object.__setattr__(self, "vector_lanes", self.vector_lanes or self.rows)
        object.__setattr__(self, "axi_data_bits", self.axi_data_bits or 8 * self.rows)
        # A slice of the vector unit holds whole groups of requantized channels.
        object.__setattr__(self, "vector_depthwise", self.vector_depthwise and 4 * self.vector_lanes >= self.rows)
        object.__setattr__(self, "vector_norm", self.vector_norm and 4 * self.vector_lanes >= self.rows)
        _check_ranges(self)
        _check_port(self)
        _check_agreement(self)
        object.__setattr__(self, "lut_products", min(self.lut_products, self.macs + self.depthwise_products))

    @property
    def word_bytes(self) -> int:
        """Bytes in a word of the scratchpad, the weight memory and external memory: one channel block of one pixel."""
        return self.rows

    @property
    def word_bits(self) -> int:
        """Bits in a word."""
        return 8 * self.word_bytes

    @property
    def port_bytes(self) -> int:
        """Width of the AXI data port in bytes."""
        return self.axi_data_bits // 8

    @property
    def beat_bytes(self) -> int:
        """Bytes that a beat carries: the width of the port, but at most a word."""
        return min(self.word_bytes, self.port_bytes)

    @property
    def word_beats(self) -> int:
        """Beats in which a word passes the port."""
        return self.word_bytes // self.beat_bytes

    @property
    def burst_words(self) -> int:
        """Words in the longest burst."""
        return self.axi_burst // self.word_beats

    @property
    def scratch_words(self) -> int:
        """Words in the scratchpad."""
        return self.scratch_kib * 1024 // self.word_bytes

    @property
    def weight_words(self) -> int:
        """Words in the weight memory."""
        return self.weight_kib * 1024 // self.word_bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates per cycle."""
        return self.rows * self.cols

    @property
    def tile_words(self) -> int:
        """Words of one weight tile: one for each column, with the column's weight for every row."""
        return self.cols

    @property
    def channel_words(self) -> int:
        """Words of one output block's channel constants: an int32 bias and a scale word for each column."""
        return CHANNEL_BYTES * self.cols // self.word_bytes

    @property
    def zero_point_words(self) -> int:
        """Words of the zero points of an output block's weights: a byte for each column, padded to whole words."""
        return -(-self.cols // self.word_bytes)

    @property
    def table_words(self) -> int:
        """Words of a 256-byte table."""
        return TABLE_BYTES // self.word_bytes

    @property
    def residual_words(self) -> int:
        """Words of the residual constants: m1 and m2 as int32, c as int64, padded to whole words."""
        return -(-RESIDUAL_BYTES // self.word_bytes)

    @property
    def vector_slices(self) -> int:
        """Cycles that the vector unit takes for a word."""
        return self.word_bytes // self.vector_lanes

    @property
    def softmax_lanes(self) -> int:
        """Bytes that a Softmax or a normalization takes per cycle."""
        # At most half of a word: the divisors of two pixels would otherwise meet in a stage of the dividers.
        return min(self.vector_lanes, self.word_bytes // 2)

    @property
    def softmax_dividers(self) -> int:
        """Quotients that a Softmax computes per cycle."""
        return max(1, self.softmax_lanes // 2)

    @property
    def runs_in_flight(self) -> int:
        """Runs of loads, and of stores, whose data may be in flight."""
        return max(self.axi_outstanding, 4)

    @property
    def norm_words(self) -> int:
        """Words of the constants of a group of `softmax_lanes` channels of a normalization."""
        return CONSTANT_WORDS * self.softmax_lanes // self.word_bytes

    @property
    def depthwise_lanes(self) -> int:
        """Requantizers of the vector unit's depthwise convolutions."""
        return self.word_bytes // 4

    @property
    def depthwise_products(self) -> int:
        """Products of the vector unit's depthwise convolutions in a cycle."""
        return TAPS * self.rows * self.vector_depthwise

    @property
    def depthwise_lut_products(self) -> int:
        """How many of `depthwise_products` are built from LUTs."""
        return min(self.lut_products, self.depthwise_products)

    @property
    def array_lut_products(self) -> int:
        """How many products of the array are built from LUTs."""
        return self.lut_products - self.depthwise_lut_products

    @property
    def wide_multipliers(self) -> bool:
        """Whether two products of one pixel share a multiplier."""
        return self.multiplier_bits == WIDE_MULTIPLIER

    @property
    def single_ported_accumulators(self) -> bool:
        """Whether a bank of accumulators has one read port, so that readout of it excludes the array."""
        # A second read port duplicates a distributed RAM. It is worth that only where strips are long or readout is
        # quick; elsewhere taking turns halves the distributed RAM.
        return self.strip <= _SMALL_STRIP and self.cols // self.lanes >= _SLOW_READOUT

    @property
    def accumulator_surplus(self) -> int:
        """Bits of a pixel's sums beyond whole block RAMs, if so few that look-up tables hold them."""
        # Families with wide multipliers have block RAMs of 72 bits.
        surplus = self.cols * self.acc_bits % 72
        return surplus if surplus <= 8 and self.wide_multipliers and not self.single_ported_accumulators else 0

    @property
    def pixels_per_word(self) -> int:
        """Pixels of four channels in a word of a packed first layer."""
        return self.word_bytes // 4

    def to_dict(self) -> dict[str, int | str | bool]:
        """All fields as plain values, in order."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def to_toml(self) -> str:
        """The parameters as a TOML document that `from_toml` accepts."""
        return "".join(f"{key} = {_toml_value(value)}\n" for key, value in self.to_dict().items())

    def fingerprint(self) -> int:
        """A 32-bit hash of the parameters, stored in every program and in a register."""
        text = self.to_toml().encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "little")

    def replace(self, **changes: Any) -> HardwareParams:
        """A copy with some fields changed, checked again; an unknown field is an error."""
        return from_dict({**self.to_dict(), **changes})


FIELD_TYPES: Mapping[str, type] = MappingProxyType(get_type_hints(HardwareParams))
"""The type of every field."""


def _plain(value: Any) -> int | str | bool:
    return str(value) if isinstance(value, RoundingMode) else value


def _toml_value(value: int | str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _as_match(value: Any) -> RoundingMode:
    try:
        return RoundingMode(value)
    except ValueError:
        raise ParameterError(f"match must be one of {[str(m) for m in RoundingMode]}, not {value!r}") from None


def _check_types(p: HardwareParams) -> None:
    for f in dataclasses.fields(p):
        value = getattr(p, f.name)
        if f.name == "match":
            continue
        wants_bool = FIELD_TYPES[f.name] is bool
        if isinstance(value, bool) != wants_bool or not isinstance(value, int):
            raise ParameterError(f"{f.name} must be {'true or false' if wants_bool else 'an integer'}, not {value!r}")


WIDE_MULTIPLIER = 25
"""Bits of the wider operand that hold two weights, so that two products share a multiplier."""
MULTIPLIERS = (18, WIDE_MULTIPLIER)
"""Values of `multiplier_bits`."""
POWERS = {
    "rows": (4, 32),
    "cols": (4, 64),
    "lanes": (1, 32),
    "strip": (16, 256),
    "scratch_kib": (4, 1024),
    "scratch_banks": (2, 16),
    "weight_kib": (2, 1024),
    "axi_burst": (4, 256),
    "axi_outstanding": (1, 32),
    "queue_depth": (2, 64),
    "vector_lanes": (1, 32),
}
"""Smallest and largest value of the parameters that are powers of two."""
DATA_BITS = (32, 64, 128, 256)
"""Widths of the AXI data port."""
_MIN_BURST_WORDS = 4
_MAX_BURST_BYTES = 4096
"""A burst must not cross a boundary of 4 KiB (AXI)."""
_SMALL_STRIP = 16
"""Words of the smallest distributed RAM."""
_SLOW_READOUT = 8
"""Readout cycles per pixel from which readout may wait for a strip's last tile without loss."""
RANGES = {"axi_addr_bits": (32, 64), "mantissa_bits": (8, 24), "acc_bits": (20, 32)}
"""Smallest and largest value of the parameters that may have any value between."""
ATTRIBUTES = {"axi_prot": (0, 7), "axi_cache": (0, 15), "axi_qos": (0, 15), "axi_user_bits": (0, 32)}
"""The same of constants on the bus."""


def _check_ranges(p: HardwareParams) -> None:
    for name, (low, high) in POWERS.items():
        value = getattr(p, name)
        if not low <= value <= high or value & (value - 1):
            raise ParameterError(f"{name} must be a power of two from {low} to {high}, not {value}")
    for name, (low, high) in (RANGES | ATTRIBUTES | {"axi_user": (0, (1 << max(p.axi_user_bits, 0)) - 1)}).items():
        value = getattr(p, name)
        if not low <= value <= high:
            raise ParameterError(f"{name} must be from {low} to {high}, not {value}")


def _burst_limits(rows: int, data_bits: int) -> tuple[int, int]:
    """Smallest and largest `axi_burst`."""
    beat_bytes = min(rows, data_bits // 8)
    return _MIN_BURST_WORDS * rows // beat_bytes, _MAX_BURST_BYTES // beat_bytes


def _check_port(p: HardwareParams) -> None:
    if p.axi_data_bits not in DATA_BITS:
        raise ParameterError(f"axi_data_bits must be one of {', '.join(map(str, DATA_BITS))}, not {p.axi_data_bits}")
    shortest, longest = _burst_limits(p.rows, p.axi_data_bits)
    if p.axi_burst > longest:
        raise ParameterError(
            f"axi_burst of {p.axi_burst} beats of {p.beat_bytes} bytes crosses 4 KiB: at most {longest}"
        )
    if p.axi_burst < shortest:
        raise ParameterError(
            f"axi_burst of {p.axi_burst} beats of {p.beat_bytes} bytes is less than {_MIN_BURST_WORDS} words of "
            f"{p.word_bytes} bytes: at least {shortest}"
        )


def _check_agreement(p: HardwareParams) -> None:
    if gcd(p.rows, p.cols) % p.lanes:
        raise ParameterError(f"lanes must divide rows and cols, but {p.lanes} does not divide {p.rows} and {p.cols}")
    if p.vector_lanes > p.rows:
        raise ParameterError(f"vector_lanes must divide rows, but {p.vector_lanes} does not divide {p.rows}")
    if p.match is RoundingMode.ORT and p.mantissa_bits != FP32_SIGNIFICAND_BITS:
        raise ParameterError(f"mantissa_bits must be {FP32_SIGNIFICAND_BITS} with match 'ort', not {p.mantissa_bits}")
    if p.strip < p.cols:
        raise ParameterError(f"strip must be at least cols = {p.cols}, not {p.strip}: else the array idles")
    if p.lut_products < 0:
        raise ParameterError(f"lut_products must be 0 or more, not {p.lut_products}")
    if p.multiplier_bits not in MULTIPLIERS:
        raise ParameterError(f"multiplier_bits must be {' or '.join(map(str, MULTIPLIERS))}, not {p.multiplier_bits}")
    # Double buffering: one weight tile with its constants is in use while the next one is loaded.
    least = 2 * (p.tile_words + p.zero_point_words + p.channel_words + p.table_words + p.residual_words)
    if p.weight_words < least:
        raise ParameterError(
            f"weight_kib must hold at least {least} words, but {p.weight_kib} KiB are {p.weight_words}"
        )


# The weight memory fits an output block of a 3x3 layer of 256 input channels on nano and small, 576 on base and large.
PRESETS: dict[str, HardwareParams] = {
    "nano": HardwareParams(
        rows=4,
        cols=4,
        lanes=1,
        strip=16,
        scratch_kib=32,
        weight_kib=16,
        axi_addr_bits=32,
        vector_lanes=1,
        scratch_banks=2,
        queue_depth=4,
        lut_products=4,
    ),
    "small": HardwareParams(
        rows=8,
        cols=8,
        lanes=1,
        strip=16,
        scratch_kib=64,
        weight_kib=32,
        axi_addr_bits=32,
        vector_lanes=1,
        lut_products=52,
        # Without them the preset fits the LFE5U-25F.
        weight_sums=False,
        constant_check=True,
    ),
    "base": HardwareParams(
        rows=16,
        cols=16,
        lanes=8,
        strip=64,
        scratch_kib=128,
        weight_kib=128,
        vector_lanes=8,
        lut_products=304,
        vector_softmax=True,
        vector_norm=True,
        vector_depthwise=True,
        constant_check=True,
    ),
    "large": HardwareParams(
        rows=32,
        cols=32,
        lanes=32,
        strip=64,
        scratch_kib=1024,
        weight_kib=256,
        vector_softmax=True,
        vector_norm=True,
        vector_depthwise=True,
        constant_check=True,
    ),
}


def preset(name: str) -> HardwareParams:
    """The preset called `name`; for an unknown name, the error lists the known ones."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ParameterError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}") from None


def preset_name(params: HardwareParams) -> str:
    """The preset that these parameters are, whatever the rounding mode, or `custom`."""
    for name, known in PRESETS.items():
        if known.replace(match=str(params.match)) == params:
            return name
    return "custom"


def from_dict(values: dict[str, Any]) -> HardwareParams:
    """Parameters from plain values; an unknown or missing field is an error that names it."""
    _check_known(sorted(values))
    required = {f.name for f in dataclasses.fields(HardwareParams) if f.default is dataclasses.MISSING}
    if missing := sorted(required - set(values)):
        raise ParameterError(
            f"hardware parameter {missing[0]!r} is missing; add it, or name a base with preset = one of "
            f"{', '.join(PRESETS)}"
        )
    return HardwareParams(**values)


def changed(params: HardwareParams, changes: Mapping[str, Any]) -> HardwareParams:
    """A copy with some fields changed; those that depend on them and are not named follow, as far as they must.

    Raises
    ------
    ParameterError
        The parameters are invalid; the message ends with the nearest valid value of a changed field.
    """
    # A port of one word stays one, whatever the rows.
    port = {"axi_data_bits": 0} if params.port_bytes == params.word_bytes else {}
    values = {**params.to_dict(), **port, **changes}
    try:
        _check_known(values)
        return _following(values, changes)
    except ParameterError as error:
        raise ParameterError(f"{error}{_nearest(values, changes)}") from None


def _following(values: Mapping[str, Any], changes: Mapping[str, Any]) -> HardwareParams:
    """Parameters whose fields outside `changes` are lowered or raised until they agree with the others."""
    rows, cols = values["rows"], values["cols"]
    integers = ("rows", "cols", "lanes", "vector_lanes", "strip", "axi_burst")
    if {type(values[name]) for name in integers} != {int} or min(rows, cols) < 1:
        return from_dict(dict(values))  # the error
    data_bits = values["axi_data_bits"] or 8 * rows
    if data_bits not in DATA_BITS:
        return from_dict(dict(values))  # the error
    shortest, longest = _burst_limits(rows, data_bits)
    follows = {
        "lanes": min(values["lanes"], gcd(rows, cols)),
        "vector_lanes": min(values["vector_lanes"], rows),
        "strip": max(values["strip"], cols),
        "axi_burst": min(max(values["axi_burst"], shortest), longest),
    }
    return from_dict({**values, **{name: value for name, value in follows.items() if name not in changes}})


def _nearest(values: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """The nearest value of the last changed field for which the parameters are valid, in words; empty without one."""
    for name in reversed(list(changes)):
        wanted = values.get(name)
        candidates = valid_values(name)
        if isinstance(wanted, int):
            candidates = sorted(candidates, key=lambda value: abs(value - wanted))
        for value in candidates:
            if value != wanted:
                try:
                    _following({**values, name: value}, changes)
                except ParameterError:
                    continue
                return f"; the nearest valid value is {name} = {_toml_value(value)}"
    return ""


def valid_values(name: str) -> list[Any]:
    """Values that a field may have by itself; of a range, its ends."""
    if name in POWERS:
        low, high = POWERS[name]
        return [1 << n for n in range(low.bit_length() - 1, high.bit_length())]
    fixed: dict[str, Any] = {
        **RANGES,
        **ATTRIBUTES,
        "match": map(str, RoundingMode),
        "multiplier_bits": MULTIPLIERS,
        "axi_data_bits": DATA_BITS,
        "lut_products": (0,),
        "axi_user": (0,),
    }
    return list(fixed.get(name, (False, True) if FIELD_TYPES.get(name) is bool else ()))


def parse_changes(words: Iterable[str]) -> dict[str, int | bool | str]:
    """Changes of fields from `FIELD=VALUE` words; values are checked by `changed`."""
    changes: dict[str, int | bool | str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ParameterError(f"a change must be FIELD=VALUE, such as rows=8, not {word!r}")
        _check_known([name.strip()])
        text = text.strip()
        digits = text.removeprefix("-")
        known = {"true": True, "false": False}
        number = digits.isascii() and digits.isdecimal()
        changes[name.strip()] = known[text] if text in known else int(text) if number else text
    return changes


def changed_name(preset: str, changes: Sequence[str]) -> str:
    """How tables name a preset with changes, which are `FIELD=VALUE`."""
    return ", ".join([preset, *(change.replace("=", " = ") for change in changes)])


def named_changes(name: str) -> tuple[str, dict[str, int | bool | str]]:
    """The preset and the changes of such a name."""
    preset, *changes = name.split(", ")
    return preset, parse_changes(change.replace(" = ", "=") for change in changes)


def _check_known(names: Iterable[str]) -> None:
    """Raise an error for a name that is no field; it names the most similar field."""
    for name in names:
        if name not in FIELD_TYPES:
            close = get_close_matches(name, FIELD_TYPES, 1)
            similar = f"did you mean {close[0]}? " if close else ""
            raise ParameterError(
                f"unknown hardware parameter {name!r}: {similar}known are {', '.join(sorted(FIELD_TYPES))}"
            )


def from_toml(path: Path) -> HardwareParams:
    """Parameters from a TOML file: all fields, or `preset = "name"` and the fields that differ from it."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"cannot read hardware parameters {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} must be a TOML file: {error}") from None
    base = values.pop("preset", None)
    try:
        return from_dict(values) if base is None else changed(preset(base), values)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
