"""Ends of carry chains: those that lead nowhere are cut off, all others stay. Constant zeros go, nothing changes."""

import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.hw.fpga.netlist import trim


def _cell(init: int, cin: int | str, cout: int) -> dict[str, Any]:
    return {
        "type": "CCU2C",
        "parameters": {"INIT0": f"{init:016b}", "INIT1": f"{0:016b}"},
        "connections": {"CIN": [cin], "C0": ["1"], "D0": ["1"], "S0": [99], "COUT": [cout]},
    }


@pytest.mark.parametrize(
    ("init", "cin", "kept"),
    [(0x000A, "0", "x"), (0x000A, "1", "x"), (0x0008, "0", "x"), (0x000A, 7, 7), (0x96AA, "1", "1")],
)
def test_a_carry_is_cut_only_where_the_cell_ignores_it(
    init: int, cin: int | str, kept: int | str, tmp_path: Path
) -> None:
    cells = {"first": _cell(init, cin, 50), "second": _cell(0x96AA, 50, 51), "last": _cell(0x96AA, 51, 52)}
    path = tmp_path / "npu.json"
    path.write_text(json.dumps({"modules": {"npu": {"cells": cells, "ports": {"carry": {"bits": [52]}}}}}))
    assert trim(path) == (kept == "x")
    after = json.loads(path.read_text())["modules"]["npu"]["cells"]
    assert after["first"]["connections"]["CIN"] == [kept]
    assert [after[name]["connections"]["COUT"] for name in after] == [[50], [51], [52]]


def test_a_carry_out_that_no_cell_reads_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "npu.json"
    path.write_text(json.dumps({"modules": {"npu": {"cells": {"only": _cell(0x96AA, "0", 5)}, "ports": {}}}}))
    assert trim(path) == 1
    assert json.loads(path.read_text())["modules"]["npu"]["cells"]["only"]["connections"]["COUT"] == ["x"]


@given(
    st.lists(st.sampled_from(["used", "unused", "0", "1"]), min_size=4, max_size=4),
    st.sampled_from(["x" * 64, "1" * 64]),
)
def test_unused_address_bits_repeat_used_ones_and_words_keep_apart(kinds: list[str], contents: str) -> None:
    wires = {
        name: [_address_bit(kind, position, name) for position, kind in enumerate(kinds)] for name in ("RAD", "WAD")
    }
    cell = {"type": "TRELLIS_DPR16X4", "parameters": {"INITVAL": contents}, "connections": wires}
    before = {name: list(bits) for name, bits in wires.items()}
    with TemporaryDirectory() as name:
        path = Path(name, "npu.json")
        path.write_text(json.dumps({"modules": {"npu": {"cells": {"only": cell}, "ports": {}}}}))
        trim(path)
        after = json.loads(path.read_text())["modules"]["npu"]["cells"]["only"]["connections"]
    repeats = contents.startswith("x") and set(kinds) != {"unused"}
    assert ("unused" in kinds and not repeats) == any(pair == ("0", "0") for pair in zip(*after.values(), strict=True))
    values = [
        dict(zip((f"w{position}" for position in range(4)), bits, strict=True)) for bits in product("01", repeat=4)
    ]
    for value in values:
        # A word's position when it is written is its position when it is read, and no other word's.
        read, write = ([value.get(bit, bit) for bit in after[port]] for port in ("RAD", "WAD"))
        assert "0" in kinds or "1" in kinds or read == write
        assert all(new == value.get(old, old) for old, new in zip(before["WAD"], write, strict=True) if old != "0")


def _address_bit(kind: str, position: int, port: str) -> str:
    """A bit of an address: a wire of both ports, or 0 for both, or a constant when read and a wire when written."""
    if kind == "unused":
        return "0"
    return kind if kind != "used" and port == "RAD" else f"w{position}"


def _carry_and_sum(table: int, inputs: list[int], cin: int) -> tuple[int, int]:
    """One bit of a chain: the table of four inputs makes the sum; its lowest quarter, of two inputs, the carry."""
    a, b, c, d = inputs
    chosen = table >> (a + 2 * b + 4 * c + 8 * d) & 1
    return chosen ^ cin, (cin if chosen else table >> (a + 2 * b) & 1)


@given(st.integers(0, 0xFFFF), st.lists(st.sampled_from(["0", "1", "w"]), min_size=4, max_size=4))
def test_zeros_are_raised_and_no_sum_or_carry_changes(init: int, inputs: list[str]) -> None:
    wires = {name + half: [inputs[i]] for i, name in enumerate("ABCD") for half in "01"}
    cell = {"type": "CCU2C", "parameters": {"INIT0": f"{init:016b}", "INIT1": f"{init:016b}"}, "connections": wires}
    with TemporaryDirectory() as name:
        path = Path(name) / "npu.json"
        path.write_text(json.dumps({"modules": {"npu": {"cells": {"only": cell}, "ports": {}}}}))
        trim(path)
        after = json.loads(path.read_text())["modules"]["npu"]["cells"]["only"]
    for half in "01":
        told = [after["connections"][name + half][0] for name in "ABCD"]
        assert told == ["w" if wire == "w" else "1" for wire in inputs]
        raised = int(after["parameters"][f"INIT{half}"], 2)
        for free in product((0, 1), repeat=4):
            was = [free[i] if wire == "w" else int(wire) for i, wire in enumerate(inputs)]
            now = [free[i] if wire == "w" else 1 for i, wire in enumerate(inputs)]
            for cin in (0, 1):
                assert _carry_and_sum(init, was, cin) == _carry_and_sum(raised, now, cin)
