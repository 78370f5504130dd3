"""Registers beside a block move into it where the block's own do the same, and stay everywhere else."""

import json
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.hw.fpga.blocks import absorb
from intloom.hw.resources import run_yosys

PRIMITIVES = Path(__file__).with_name("primitives.v")
Cell = dict[str, Any]
CLOCK, RESET, ENABLE, OTHER = 2, 3, 4, 5
"""Wires that the hand-made netlists share."""
ENABLES = ["CE0", "CE1", "CE2", "CE3"]


def _cell(kind: str, outputs: set[str], parameters: dict[str, str], wires: dict[str, int | str]) -> Cell:
    directions = {port: "output" if port in outputs else "input" for port in wires}
    connections = {port: [bit] for port, bit in wires.items()}
    return {"type": kind, "parameters": parameters, "port_directions": directions, "connections": connections}


def _register(d: int | str, q: int, **changes: int | str) -> Cell:
    """A flip-flop; changes in lower case are of its wires, in upper case of its parameters."""
    wires: dict[str, int | str] = {"CLK": CLOCK, "CE": "1", "LSR": "0", "DI": d, "Q": q}
    wires |= {name.upper(): bit for name, bit in changes.items() if name.islower()}
    parameters = {"CLKMUX": "CLK", "CEMUX": "CE", "LSRMUX": "LSR", "REGSET": "RESET"}
    parameters |= {name: str(text) for name, text in changes.items() if name.isupper()}
    return _cell("TRELLIS_FF", {"Q"}, parameters, wires)


def _table(bit: int) -> Cell:
    return _cell("LUT4", {"Z"}, {}, {"A": bit, "Z": 999})


def _multiplier(a: list[int | str], b: list[int | str], p: list[int], signed: str = "0") -> Cell:
    """A multiplier of operands that are extended by zeros, or by their signs."""
    wires: dict[str, int | str] = {"SIGNEDA": signed, "SIGNEDB": signed}
    for side, bits in (("A", a), ("B", b)):
        full = bits + [bits[-1] if signed == "1" else "0"] * (18 - len(bits))
        wires |= {f"{side}{position}": bit for position, bit in enumerate(full)}
    outputs: dict[str, int | str] = {f"P{position}": bit for position, bit in enumerate(p)}
    return _cell("MULT18X18D", set(outputs), {}, wires | outputs)


def _memory(width: int, a: list[int], b: list[int], **changes: int | str) -> Cell:
    wires: dict[str, int | str] = {}
    for side in "AB":
        wires |= {f"CLK{side}": CLOCK, f"OCE{side}": "0", f"RST{side}": "0"}
    outputs: dict[str, int | str] = {f"DOA{position}": bit for position, bit in enumerate(a)}
    outputs |= {f"DOB{position}": bit for position, bit in enumerate(b)}
    parameters = {f"DATA_WIDTH_{side}": f"{width:032b}" for side in "AB"}
    parameters |= {f"REGMODE_{side}": "NOREG" for side in "AB"} | {f"CLK{side}MUX": f"CLK{side}" for side in "AB"}
    wires |= {name.upper(): bit for name, bit in changes.items() if name.islower()}
    parameters |= {name: str(text) for name, text in changes.items() if name.isupper()}
    return _cell("DP16KD", set(outputs), parameters, wires | outputs)


def _absorbed(cells: dict[str, Cell], outputs: list[int] | None = None) -> tuple[int, dict[str, Cell]]:
    """How many registers went, and the cells afterwards."""
    with TemporaryDirectory() as name:
        path = Path(name) / "chip.json"
        ports = {"DI": {"direction": "output", "bits": outputs or []}}
        path.write_text(json.dumps({"modules": {"chip": {"cells": cells, "ports": ports}}}))
        count = absorb(path)
        after = json.loads(path.read_text())["modules"]["chip"]["cells"]
    assert count == len(cells) - len(after)
    return count, after


def _wires(cell: Cell, ports: list[str]) -> list[int | str]:
    return [cell["connections"][port][0] for port in ports]


def test_registers_behind_a_product_move_into_the_multiplier() -> None:
    cells = {
        "mult": _multiplier([10, 11], [12, 13], [20, 21, 22]),
        "low": _register(20, 30), "high": _register(21, 31), "first": _table(30), "second": _table(31),
    }  # fmt: skip
    count, after = _absorbed(cells)
    mult = after["mult"]
    assert (count, set(after)) == (2, {"mult", "first", "second"})
    assert _wires(mult, ["P0", "P1", "CLK0", *ENABLES, "RST0"]) == [30, 31, CLOCK, "1", "1", "1", "1", "0"]
    assert {mult["port_directions"][port] for port in ("CLK0", *ENABLES, "RST0")} == {"input"}
    assert mult["parameters"] == {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0", "REG_OUTPUT_RST": "RST0"}


def test_a_register_without_a_pin_for_an_enable_moves_too() -> None:
    always = _register(20, 30, CEMUX="1 ")
    del always["connections"]["CE"]
    count, after = _absorbed({"mult": _multiplier([10], [11], [20]), "only": always, "reader": _table(30)})
    assert (count, _wires(after["mult"], ["CE0"])) == (1, ["1"])


OTHERS = [
    _register(21, 31, clk=OTHER),
    _register(21, 31, ce=ENABLE),
    _register(21, 31, ce="0"),
    _register(21, 31, CEMUX="INV"),
    _register(21, 31, lsr=RESET),
    _register(21, 31, LSRMUX="INV"),
    _register(21, 31, CLKMUX="INV"),
    _register(21, 31, REGSET="SET"),
    _register(50, 31, ce=21),
    _register(21, 31) | {"type": "TRELLIS_DPR16X4"},
    _table(21),
]
"""What a block's own register does not do, beside one that it does; the first one it does when all do."""
UNLIKE = 1


@pytest.mark.parametrize("other", OTHERS)
def test_a_product_stays_where_one_of_its_registers_does_something_else(other: Cell) -> None:
    cells = {"mult": _multiplier([10], [11], [20, 21]), "other": other, "one": _register(20, 30)}
    cells |= {"first": _table(30), "second": _table(31)}
    assert _absorbed(cells) == (0, cells)


@pytest.mark.parametrize("other", OTHERS[UNLIKE:])
def test_a_product_stays_where_all_registers_do_something_else(other: Cell) -> None:
    cells = {"mult": _multiplier([10], [11], [21]), "other": other, "second": _table(31)}
    assert _absorbed(cells) == (0, cells)


@pytest.mark.parametrize("reader", [{"reader": _table(20)}, {"reader": _register(20, 31)}, {}])
def test_a_product_that_is_read_twice_stays(reader: dict[str, Cell]) -> None:
    cells = {"mult": _multiplier([10], [11], [20]), "only": _register(20, 30), "behind": _table(30)} | reader
    assert _absorbed(cells, [] if reader else [20])[0] == 0


def _signed_by(bit: int, mult: Cell) -> Cell:
    mult["connections"]["SIGNEDA"] = [bit]
    return mult


def _operands(**changes: Cell) -> dict[str, Cell]:
    """Two multipliers with a common operand."""
    mults = {"one": _multiplier([30], [31], [40]), "two": _multiplier([30, 33], [32, "0"], [41])}
    registers = {
        "a": _register(20, 30), "top": _register(23, 33), "b1": _register(21, 31), "b2": _register(22, 32, CEMUX="1"),
    }  # fmt: skip
    return mults | registers | {"first": _table(40), "second": _table(41)} | changes


def test_registers_before_both_operands_move_into_every_multiplier() -> None:
    count, after = _absorbed(_operands())
    assert (count, set(after)) == (4, {"one", "two", "first", "second"})
    ports = ["A0", "A1", "B0", "B1", "CLK0", *ENABLES, "RST0"]
    assert _wires(after["one"], ports) == [20, "0", 21, "0", CLOCK, "1", "1", "1", "1", "0"]
    assert _wires(after["two"], ports) == [20, 23, 22, "0", CLOCK, "1", "1", "1", "1", "0"]
    names = {f"REG_INPUT{side}_{part}": f"{part}0" for side in "AB" for part in ("CLK", "CE", "RST")}
    assert after["one"]["parameters"] == names


@pytest.mark.parametrize(
    ("changes", "outputs"),
    [
        ({"other": _table(30)}, []),
        ({"other": _register(30, 50)}, []),
        ({}, [30]),
        # What stays at one multiplier stays at the other, by the operand that they share.
        ({"other": _table(31)}, []),
        ({"b2": _register(22, 32, clk=OTHER)}, []),
        ({"b2": _register(22, 32, lsr=RESET)}, []),
        ({"b2": _table(22) | {"connections": {"A": [22], "Z": [32]}}}, []),
        ({"b2": _register(22, 32, ce=ENABLE)}, []),
        ({"top": _register(23, 33, ce=ENABLE)}, []),
        ({"top": _register(23, 33, ce=ENABLE), "a": _register(20, 30, ce=ENABLE)}, []),
        ({"two": _multiplier([30, 33], [32, "1"], [41])}, []),
        ({"two": _multiplier([30, 33], ["0"], [41])}, []),
        ({"two": _multiplier([30, 33], [60], [41])}, []),
        ({"two": _signed_by(30, _multiplier([30, 33], [32], [41]))}, []),
    ],
)
def test_operands_stay_where_a_register_has_to(changes: dict[str, Cell], outputs: list[int]) -> None:
    cells = _operands(**changes)
    assert _absorbed(cells, outputs) == (0, cells)


def test_an_open_pin_of_an_operand_is_left_open() -> None:
    chain = _cell("CCU2C", {"COUT"}, {}, {"COUT": "x"})
    _, after = _absorbed(_operands(chain=chain, two=_multiplier([30, 33], [32, "x"], [41])))
    assert _wires(after["two"], ["B0", "B1"]) == [22, "x"]


def test_an_operand_of_another_clock_than_the_product_stays() -> None:
    kept = {"a": _register(20, 30), "b": _register(21, 31)}
    cells = {"mult": _multiplier([30], [31], [40]), "p": _register(40, 50, clk=OTHER), "reader": _table(50)} | kept
    count, after = _absorbed(cells)
    assert (count, set(after)) == (1, {"mult", "a", "b", "reader"})


def test_a_register_between_two_multipliers_moves_into_the_first() -> None:
    cells = {
        "one": _multiplier([10], [11], [40]), "between": _register(40, 41), "b": _register(21, 31),
        "two": _multiplier([41], [31], [42]), "reader": _table(42),
    }  # fmt: skip
    count, after = _absorbed(cells)
    assert (count, set(after)) == (1, {"one", "two", "b", "reader"})
    assert _wires(after["one"], ["P0"]) == _wires(after["two"], ["A0"]) == [41]


def _drive(cell: Cell, values: dict[int, int]) -> dict[int, int]:
    """What a multiplier drives its wires to."""

    def operand(side: str) -> int:
        bits = _wires(cell, [f"{side}{position}" for position in range(18)])
        value = sum(
            (values[bit] if isinstance(bit, int) else int(bit)) << position for position, bit in enumerate(bits)
        )
        return value - (value >> 17 << 18) if _wires(cell, [f"SIGNED{side}"]) == ["1"] else value

    product = operand("A") * operand("B")
    outputs = {port: bits[0] for port, bits in cell["connections"].items() if port[0] == "P"}
    assert all(int(port[1:]) < 36 for port in outputs)
    return {bit: product >> int(port[1:]) & 1 for port, bit in outputs.items()}


@given(st.integers(1, 18), st.integers(1, 18), st.integers(1, 36), st.sampled_from(["00", "01", "10", "11"]), st.data())
def test_a_product_is_the_same_with_its_operands_moved_up(
    wide_a: int, wide_b: int, used: int, signed: str, data: st.DataObject
) -> None:
    a, b, p = list(range(100, 100 + wide_a)), list(range(200, 200 + wide_b)), list(range(300, 300 + used))
    mult = _multiplier([*a], [*b], p, "1")
    mult["connections"] |= {"SIGNEDA": [signed[0]], "SIGNEDB": [signed[1]]}
    _, after = _absorbed({"mult": mult}, p)
    values = {bit: data.draw(st.integers(0, 1)) for bit in a + b}
    assert _drive(after["mult"], values) == _drive(mult, values)
    spare = {
        side: 18 - wide if flag == "1" else 0 for side, wide, flag in zip("AB", (wide_a, wide_b), signed, strict=True)
    }
    if used + sum(spare.values()) <= 36:
        assert all(
            _wires(after["mult"], [f"{side}{position}"]) == ["0"] for side in "AB" for position in range(spare[side])
        )


def test_an_operand_that_is_never_negative_stays_where_it_is() -> None:
    mult = _multiplier([10, "0"], ["1"], [20], "1")
    assert _wires(_absorbed({"mult": mult}, [20])[1]["mult"], ["A0", "B0", "P0"]) == [10, "1", 20]


@pytest.mark.parametrize("wide", [False, True])
def test_registers_behind_what_a_ram_reads_move_into_it(*, wide: bool) -> None:
    cells = {
        "ram": _memory(36 if wide else 9, [10], [11, 12]),
        "r0": _register(10, 20), "r1": _register(11, 21), "q0": _table(20), "q1": _table(21),
    }  # fmt: skip
    count, after = _absorbed(cells)
    ram = after["ram"]
    assert (count, _wires(ram, ["DOA0", "DOB0", "DOB1"])) == (2, [20, 21, 12])
    assert _wires(ram, ["OCEA", "OCEB"]) == ["1", "1"]
    assert [ram["parameters"][f"REGMODE_{side}"] for side in "AB"] == ["OUTREG", "OUTREG"]


def test_a_port_that_no_cell_reads_is_left_alone() -> None:
    cells = {"ram": _memory(9, [10], [11]), "r": _register(11, 21), "q": _table(21)}
    _, after = _absorbed(cells)
    assert [after["ram"]["parameters"][f"REGMODE_{side}"] for side in "AB"] == ["NOREG", "OUTREG"]
    assert _wires(after["ram"], ["OCEA", "OCEB"]) == ["0", "1"]


@pytest.mark.parametrize(
    ("changes", "width"),
    [
        ({"rstb": RESET}, 9),
        ({"clkb": OTHER}, 9),
        ({"CLKBMUX": "INV"}, 9),
        # One word of both sides: what holds at one side holds for the word.
        ({"rsta": RESET}, 36),
        ({"clka": OTHER}, 36),
    ],
)
def test_a_word_stays_where_the_ram_has_another_clock_or_a_reset(changes: dict[str, int | str], width: int) -> None:
    cells = {"ram": _memory(width, [10], [11], **changes), "r": _register(11, 21), "q": _table(21)}
    assert _absorbed(cells) == (0, cells)


@pytest.mark.parametrize("other", OTHERS)
def test_a_word_stays_where_one_of_its_registers_does_something_else(other: Cell) -> None:
    for width, a, b in ((9, [], [20, 21]), (36, [20], [21])):
        cells = {"ram": _memory(width, a, b), "r": _register(20, 30), "other": other, "q": _table(30), "s": _table(31)}
        assert _absorbed(cells) == (0, cells)


@pytest.mark.parametrize("other", OTHERS[UNLIKE:])
def test_a_word_stays_where_all_registers_do_something_else(other: Cell) -> None:
    cells = {"ram": _memory(9, [], [21]), "other": other, "s": _table(31)}
    assert _absorbed(cells) == (0, cells)


_DESIGN = """\
module {name}(input clk, input [3:0] ce, input signed [7:0] a, b, input [9:0] at, to, input [35:0] d,
  output reg signed [15:0] y, output reg signed [15:0] z, output reg [17:0] narrow, output reg [35:0] wide);
  reg signed [7:0] held_a = 0, held_b = 0, held_c = 0;
  initial begin y = 0; z = 0; narrow = 0; wide = 0; read = 0; word = 0; end
  (* no_rw_check *) reg [17:0] short [0:1023];
  reg [17:0] read;
  (* no_rw_check *) reg [35:0] long [0:511];
  reg [35:0] word;
  integer i;
  initial for (i = 0; i < 512; i = i + 1) begin short[i] = 0; short[i + 512] = 0; long[i] = 0; end
  always @(posedge clk) begin
    held_a <= a;
    held_b <= b;
    held_c <= d[7:0];
    y <= held_a * held_b;
    if (ce[2]) z <= held_a * held_c;
    if (ce[3]) begin short[at] <= d[17:0]; long[at[8:0]] <= d; end
    if (ce[0]) read <= short[to];
    narrow <= read;
    if (ce[1]) word <= long[to[8:0]];
    wide <= word;
  end
endmodule
"""
_BENCH = Path(__file__).with_name("blocks_bench.v").read_text(encoding="utf-8")
_SYNTHESIS = "read_verilog chip.v; synth_lattice -family ecp5 -noiopad -top chip -json chip.json"


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products, one with an enable, and two RAMs, after the move of registers, under a bench with the reference."""
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "chip.v").write_text(_DESIGN.replace("{name}", "chip"))
    (folder / "bench.v").write_text(_DESIGN.replace("{name}", "reference") + _BENCH)
    run_yosys(_SYNTHESIS, folder)
    assert absorb(folder / "chip.json") == 3 * 8 + 16 + 18 + 36
    return folder


def _wrong(folder: Path) -> int:
    """In how many cycles the netlist differs from the reference."""
    run_yosys("read_json chip.json; write_verilog -noattr gates.v", folder)
    command = ["iverilog", "-g2012", "-o", "bench", "-s", "bench", "bench.v", "gates.v", str(PRIMITIVES)]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    wrong, right = done.stdout.rpartition("wrong: ")[2].split(", right: ")
    assert int(right) > 1000
    return int(wrong)


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_blocks_with_registers_equal_the_design(design: Path) -> None:
    assert _wrong(design) == 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"REG_INPUTB_CLK": "CLK0"', '"REG_INPUTB_CLK": "NONE"'),
        (r'"CE3": \["1"\]', '"CE3": ["0"]'),
        ('"REG_OUTPUT_CLK": "CLK0"', '"REG_OUTPUT_CLK": "NONE"'),
        ('"REGMODE_A": "OUTREG"', '"REGMODE_A": "NOREG"'),
        (r'"OCEA": \["1"\]', '"OCEA": ["0"]'),
    ],
)
def test_a_register_that_is_wrong_is_seen(good: str, bad: str, design: Path, tmp_path: Path) -> None:
    for file in ("bench.v", "chip.json"):
        (tmp_path / file).write_text((design / file).read_text())
    netlist, count = re.subn(good, bad, (tmp_path / "chip.json").read_text())
    assert count
    (tmp_path / "chip.json").write_text(netlist)
    assert _wrong(tmp_path) > 0
