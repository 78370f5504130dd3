"""Parameters: presets, files, and an error with the numbers for every contradiction."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given

from intloom.common.errors import FileFormatError, ParameterError
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import (
    PRESETS,
    HardwareParams,
    changed,
    from_dict,
    from_toml,
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
