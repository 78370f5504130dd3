"""Parameters: presets, files, and an error with the numbers for every contradiction."""

import dataclasses
import itertools
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given

from intloom.common.errors import FileFormatError, ParameterError
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.params import (
    PRESETS,
    HardwareParams,
    changed,
    changed_name,
    from_dict,
    from_toml,
    named_changes,
    parse_changes,
    preset,
    preset_name,
)
from tests.hw.spec.strategies import hardware

BASE = PRESETS["base"]


def test_presets_have_the_promised_arrays():
    arrays = {name: (p.rows, p.cols) for name, p in PRESETS.items()}
    assert arrays == {"nano": (4, 4), "small": (8, 8), "base": (16, 16), "large": (32, 32)}


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="preset must be one of nano, small, base, large, not 'huge'"):
        preset("huge")


@given(hardware())
def test_toml_round_trips(params: HardwareParams):
    assert from_dict(tomllib.loads(params.to_toml())) == params


def test_toml_files_give_all_fields_or_a_preset_and_changes(tmp_path: Path):
    whole, changed = tmp_path / "whole.toml", tmp_path / "changed.toml"
    whole.write_text(BASE.to_toml())
    changed.write_text('preset = "base"\nweight_kib = 256\nmatch = "exact"\n')
    assert from_toml(whole) == BASE
    assert from_toml(changed) == BASE.replace(weight_kib=256, match="exact")
    assert from_toml(changed).match is RoundingMode.EXACT


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("rows = ", FileFormatError, "must be a TOML file"),
        ('preset = "huge"', ParameterError, "preset must be one of .*not 'huge'"),
        ('preset = "base"\nrow = 8', ParameterError, "unknown hardware parameter 'row'"),
        ("rows = 8", ParameterError, "'cols' is missing; .* preset = one of nano, small"),
        (
            'preset = "base"\nrows = 4\nlanes = 8',
            ParameterError,
            "lanes must divide rows and cols, but 8 does not divide 4 and 16; the nearest valid value is lanes = 4",
        ),
        ('preset = "base"\nrows = "8"', ParameterError, "rows must be an integer, not '8'"),
    ],
)
def test_a_bad_file_is_refused_and_named(tmp_path: Path, text: str, error: type[Exception], message: str):
    path = tmp_path / "hardware.toml"
    path.write_text(text)
    with pytest.raises(error, match=rf"^(?s:.*){re.escape(str(path))}.*{message}"):
        from_toml(path)


def test_files_that_are_missing_or_no_text_are_refused(tmp_path: Path):
    with pytest.raises(FileFormatError, match=r"cannot read hardware parameters .*absent\.toml: No such file"):
        from_toml(tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="must be a TOML file"):
        from_toml(binary)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 32}, "lanes must divide rows and cols, but 32 does not divide 16 and 16"),
        ({"vector_lanes": 32}, "vector_lanes must divide rows, but 32 does not divide 16"),
        ({"vector_lanes": 3}, "vector_lanes must be a power of two from 1 to 32, not 3"),
        ({"axi_data_bits": 512}, "axi_data_bits must be one of 32, 64, 128, 256, not 512"),
        (
            {"axi_burst": 4, "axi_data_bits": 64},
            "axi_burst of 4 beats of 8 bytes is less than 4 words of 16 bytes: at least 8",
        ),
        (
            {"axi_burst": 256, "rows": 32, "axi_data_bits": 256},
            "axi_burst of 256 beats of 32 bytes crosses 4 KiB: at most 128",
        ),
        ({"mantissa_bits": 16}, "mantissa_bits must be 24 with match 'ort', not 16"),
        ({"cols": 32, "strip": 16}, "strip must be at least cols = 32, not 16: else the array idles"),
        ({"lut_products": -1}, "lut_products must be 0 or more, not -1"),
        ({"multiplier_bits": 27}, "multiplier_bits must be 18 or 25, not 27"),
        ({"match": "tflite"}, "match must be one of ['ort', 'exact'], not 'tflite'"),
        ({"weight_kib": 2, "cols": 32, "strip": 64}, "weight_kib must hold at least 134 words, but 2 KiB are 128"),
        ({"trace": 1}, "trace must be true or false, not 1"),
        ({"rows": True}, "rows must be an integer, not True"),
        ({"strip": 64.0}, "strip must be an integer, not 64.0"),
    ],
)
def test_a_contradiction_is_refused_with_its_numbers(changes: dict[str, object], message: str):
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        BASE.replace(**changes)


def test_fields_that_depend_on_a_change_follow_unless_they_are_named():
    assert changed(BASE, {"rows": 4}) == BASE.replace(rows=4, axi_data_bits=32, lanes=4, vector_lanes=4)
    wide = changed(BASE, {"cols": 64, "rows": 32, "axi_burst": 128})
    assert (wide.strip, wide.axi_burst, wide.axi_data_bits) == (64, 128, 256)
    short = changed(BASE, {"axi_data_bits": 64, "axi_burst": 16})
    assert (short.axi_burst, short.burst_words, short.word_beats, short.beat_bytes) == (16, 8, 2, 8)
    # A port that is not a word wide stays, and bursts keep four words of it at least.
    tall = changed(short, {"rows": 32, "axi_data_bits": 32})
    assert (changed(short, {"rows": 4}).axi_data_bits, tall.axi_burst, tall.burst_words) == (64, 32, 4)
    with pytest.raises(ParameterError, match=r"axi_data_bits must be one of .*, not 100; .* axi_data_bits = 128$"):
        changed(BASE, {"axi_data_bits": 100})


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("rows=12", "rows must be a power of two from 4 to 32, not 12; the nearest valid value is rows = 8"),
        ("lanes=many", "lanes must be an integer, not 'many'; the nearest valid value is lanes = 1"),
        ("acc_bits=40", "acc_bits must be from 20 to 32, not 40; the nearest valid value is acc_bits = 32"),
        ("weight_kib=2048", "the nearest valid value is weight_kib = 1024"),
        ("multiplier_bits=27", "the nearest valid value is multiplier_bits = 25"),
        ("match=tflite", 'the nearest valid value is match = "ort"'),
        ("trace=1", "trace must be true or false, not 1; the nearest valid value is trace = false"),
        ("lut_products=-1", "the nearest valid value is lut_products = 0"),
        ("rows", "a change must be FIELD=VALUE, such as rows=8, not 'rows'"),
        ("scratch=4", "unknown hardware parameter 'scratch': did you mean scratch_kib?"),
        ("rows=²", "rows must be an integer, not '²'"),
    ],
)
def test_a_bad_change_names_the_nearest_valid_value(word: str, message: str):
    with pytest.raises(ParameterError, match=re.escape(message)):
        changed(BASE, parse_changes([word]))


def test_more_products_in_luts_than_there_are_mean_all():
    assert changed(BASE, parse_changes(["rows=4", "lut_products=999"])).lut_products == 4 * 16 + 5 * 4


RANGES = {
    "rows": (4, 32, True),
    "cols": (4, 64, True),
    "lanes": (1, 32, True),
    "strip": (16, 256, True),
    "scratch_kib": (4, 1024, True),
    "scratch_banks": (2, 16, True),
    "weight_kib": (2, 1024, True),
    "axi_addr_bits": (32, 64, False),
    "axi_prot": (0, 7, False),
    "axi_cache": (0, 15, False),
    "axi_qos": (0, 15, False),
    "axi_user_bits": (0, 32, False),
    "axi_burst": (4, 256, True),
    "axi_outstanding": (1, 32, True),
    "mantissa_bits": (8, 24, False),
    "acc_bits": (20, 32, False),
    "queue_depth": (2, 64, True),
}


@pytest.mark.parametrize(("name", "low", "high", "power"), [(n, *r) for n, r in RANGES.items()])
def test_a_value_out_of_range_is_refused(name: str, low: int, high: int, power: bool):
    wrong = [low // 2 if power else low - 1, 2 * high if power else high + 1, -high, *([high - 1] if power else [])]
    what = f"a power of two from {low} to {high}" if power else f"from {low} to {high}"
    for value in wrong:
        with pytest.raises(ParameterError, match=f"^{name} must be {what}, not {value}$"):
            BASE.replace(**{name: value})


def test_the_documented_ranges_are_the_checked_ones():
    for name, (low, high, _) in RANGES.items():
        text = HardwareParams.__dataclass_fields__[name].metadata["doc"]
        # The lanes' range follows from rows and cols, which they must divide.
        assert f"{low} to {high}" in text or name == "lanes", name


def test_vector_lanes_left_out_are_as_many_as_rows():
    assert BASE.replace(vector_lanes=0) == BASE.replace(vector_lanes=16)
    assert BASE.replace(vector_lanes=4).vector_slices == 4


def test_every_field_is_documented():
    assert all(f.metadata["doc"].endswith(".") for f in dataclasses.fields(HardwareParams))


def test_parameters_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.rows = 8  # type: ignore[misc]  # the assignment is what is tested


@given(hardware())
def test_derived_sizes_agree(params: HardwareParams):
    assert params.beat_bytes == min(params.word_bytes, params.port_bytes)
    assert params.beat_bytes * params.word_beats == params.word_bytes == params.word_bits // 8
    assert params.burst_words * params.word_beats == params.axi_burst
    assert params.scratch_words * params.word_bytes == params.scratch_kib * 1024
    assert params.weight_words * params.word_bytes == params.weight_kib * 1024
    assert params.tile_words * params.word_bytes == params.macs
    assert params.channel_words * params.word_bytes == 8 * params.cols
    assert params.table_words * params.word_bytes == 256
    assert params.residual_words * params.word_bytes >= 16
    assert params.pixels_per_word * 4 == params.word_bytes


def test_parameters_have_the_name_of_their_preset():
    assert [preset_name(p) for p in PRESETS.values()] == list(PRESETS)
    assert preset_name(BASE.replace(match="exact")) == "base"
    assert preset_name(BASE.replace(weight_kib=256)) == "custom"


@pytest.mark.parametrize(("name", "low", "high", "power"), [(n, *r) for n, r in RANGES.items()])
def test_every_value_in_range_is_accepted(name: str, low: int, high: int, power: bool):
    # 4 beats are 4 words of 4 bytes only, and lanes are at most the rows.
    wide = {"cols": 32, "rows": 32, "strip": 64, "match": "exact"}
    base = changed(BASE, wide if name == "lanes" else {**wide, "rows": 4, "cols": 4})
    values = [1 << n for n in range(low.bit_length() - 1, high.bit_length())] if power else range(low, high + 1)
    assert [getattr(changed(base, {name: value}), name) for value in values] == list(values)


@pytest.mark.parametrize("bits", range(33))
def test_axi_user_fits_its_bits(bits: int):
    largest = (1 << bits) - 1
    assert BASE.replace(axi_user_bits=bits, axi_user=largest).axi_user == largest
    for value in (-1, largest + 1):
        with pytest.raises(ParameterError, match=f"^axi_user must be from 0 to {largest}, not {value}$"):
            BASE.replace(axi_user_bits=bits, axi_user=value)


def accepted(**changes: object) -> bool:
    try:
        PRESETS["large"].replace(weight_kib=1024, strip=256, **changes)
    except ParameterError:
        return False
    return True


def test_lanes_divide_rows_and_columns():
    sizes = [1 << n for n in range(7)]
    for rows, cols, lanes in itertools.product(sizes[2:6], sizes[2:], sizes[:6]):
        fits = rows % lanes == cols % lanes == 0
        assert accepted(rows=rows, cols=cols, lanes=lanes, vector_lanes=1, axi_data_bits=32) == fits, (
            rows,
            cols,
            lanes,
        )


def test_vector_lanes_divide_rows_and_a_quarter_of_them_computes_depthwise_and_norms():
    for rows, lanes in itertools.product((4, 8, 16, 32), (1, 2, 4, 8, 16, 32)):
        changes = {"rows": rows, "lanes": 1, "vector_lanes": lanes, "axi_data_bits": 32}
        assert accepted(**changes) == (lanes <= rows)
        if lanes <= rows:
            for depthwise, norm in itertools.product((False, True), repeat=2):
                p = PRESETS["large"].replace(**changes, vector_depthwise=depthwise, vector_norm=norm)
                quarter = lanes >= rows // 4
                assert (p.vector_depthwise, p.vector_norm) == (depthwise and quarter, norm and quarter)
                assert p.vector_slices == rows // lanes
                # Half of a word at most, and half as many dividers, at least one.
                assert p.softmax_lanes == min(lanes, rows // 2)
                assert p.softmax_dividers == {1: 1, 2: 1, 4: 2, 8: 4, 16: 8}[p.softmax_lanes]
                if quarter:
                    assert p.norm_words * rows == CONSTANT_WORDS * p.softmax_lanes
                assert p.depthwise_products == (5 * rows if p.vector_depthwise else 0)
                assert p.depthwise_lanes == rows // 4


def test_a_burst_has_four_words_and_stays_inside_4_kib():
    for rows, bits, burst in itertools.product((4, 8, 16, 32), (32, 64, 128, 256), [1 << n for n in range(2, 9)]):
        beat = min(rows, bits // 8)
        fits = burst * beat >= 4 * rows and burst * beat <= 4096
        assert accepted(rows=rows, lanes=1, vector_lanes=1, axi_data_bits=bits, axi_burst=burst) == fits
        follows = changed(BASE, {"rows": rows, "axi_data_bits": bits}).axi_burst
        assert follows == min(max(64, 4 * rows // beat), 4096 // beat)


def test_the_weight_memory_holds_two_output_blocks_of_one_tile():
    for rows, cols, kib in itertools.product((4, 8, 16, 32), (4, 8, 16, 32, 64), (2, 4, 8, 16)):
        # In bytes: weights, zero points and residual constants in whole words, constants of a channel, a table.
        block = rows * cols + -(-cols // rows) * rows + 8 * cols + 256 + -(-16 // rows) * rows
        one = {"rows": rows, "cols": cols, "lanes": 1, "vector_lanes": 1, "strip": 64, "axi_data_bits": 32}
        if 2 * block <= kib * 1024:
            assert PRESETS["large"].replace(**one, weight_kib=kib).weight_kib == kib
        else:
            with pytest.raises(ParameterError, match=f"weight_kib must hold at least {2 * block // rows} words"):
                PRESETS["large"].replace(**one, weight_kib=kib)


@given(hardware())
def test_products_in_luts_are_those_of_depthwise_first(params: HardwareParams):
    depthwise = 5 * params.rows * params.vector_depthwise
    for count in (0, depthwise - 1, depthwise, depthwise + 1, depthwise + params.macs, depthwise + params.macs + 1):
        p = params.replace(lut_products=max(count, 0))
        assert p.lut_products == p.depthwise_lut_products + p.array_lut_products
        assert p.lut_products == min(max(count, 0), depthwise + params.macs)
        assert p.depthwise_lut_products == min(p.lut_products, depthwise)


def test_every_field_is_part_of_the_fingerprint():
    others: dict[str, object] = {
        "axi_user": 1,
        "axi_data_bits": 64,
        "lut_products": 7,
        "multiplier_bits": 25,
        "match": "exact",
    }
    base = BASE.replace(axi_user_bits=2, vector_lanes=16)
    for f in dataclasses.fields(HardwareParams):
        old, shared = getattr(base, f.name), base
        if f.name == "mantissa_bits":
            shared = base.replace(match="exact")
        if f.name == "rows":
            shared = base.replace(axi_data_bits=256)
        new = others[f.name] if f.name in others else not old if isinstance(old, bool) else old - 1
        near = [new, *([old * 2, old // 2, old + 1] if isinstance(old, int) else [])]
        other = next(p for v in near if v != old and (p := replaced(shared, f.name, v)) is not None)
        assert getattr(other, f.name) != getattr(shared, f.name)
        assert other.fingerprint() != shared.fingerprint(), f.name
        assert from_dict(tomllib.loads(other.to_toml())).fingerprint() == other.fingerprint()


def replaced(params: HardwareParams, name: str, value: object) -> HardwareParams | None:
    try:
        return params.replace(**{name: value})
    except ParameterError:
        return None


def test_runs_in_flight_are_as_many_as_bursts_but_at_least_four():
    bursts = (1, 2, 4, 8, 16, 32)
    assert [BASE.replace(axi_outstanding=n).runs_in_flight for n in bursts] == [4, 4, 4, 8, 16, 32]


def test_short_strips_with_slow_readout_share_a_read_port_and_few_bits_are_no_block_ram():
    for strip, cycles in itertools.product((16, 32), (1, 4, 8, 16)):
        p = BASE.replace(cols=16, lanes=16 // cycles, strip=strip)
        assert p.single_ported_accumulators == (strip == 16 and cycles >= 8)
        for bits, multiplier in itertools.product(range(20, 33), (18, 25)):
            beyond = 16 * bits % 72
            few = beyond <= 8 and multiplier == 25 and not p.single_ported_accumulators
            assert p.replace(acc_bits=bits, multiplier_bits=multiplier).accumulator_surplus == (beyond if few else 0)


@pytest.mark.parametrize("words", [(), ("rows=8",), ("match=exact", "trace=false", "lut_products=3")])
def test_the_name_of_a_preset_with_changes_gives_them_back(words: tuple[str, ...]):
    assert named_changes(changed_name("small", words)) == ("small", parse_changes(words))
