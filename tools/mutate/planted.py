"""Bugs planted in the source, and the tests that must fail with each of them: `python -m tools.mutate.planted`.

The faults of `tools.mutate` are small and many. These are few and like those that designers make: a value with too few
bits, an event that is lost when it meets another one. Each is planted in a copy of the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.common.temporary_files import temporary_folder
from tools.mutate.bug import Bug
from tools.mutate.planted_counters import COUNTER_BUGS
from tools.signoff.runs import present_commit

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "docs" / "data" / "planted.json"
_CONTROL, _MAC, _VECTOR = "tests/hw/control", "tests/hw/mac", "tests/hw/vector"


BUGS = (
    Bug(
        "the cycle counter's carry has 19 bits",
        "hw/control/counters.py",
        "high.eq(old.high + (old.top & ~low[-1])),",
        "high.eq((old.high + (old.top & ~low[-1]))[: 19 - SHORT_BITS]),",
        f"{_CONTROL}/test_counters.py::test_every_counter_carries_through_all_of_its_bits",
    ),
    Bug(
        "ends of instructions are counted only while a program runs",
        "hw/control/counters.py",
        'events[f"{unit.name}_DONE"].eq(event.done),',
        'events[f"{unit.name}_DONE"].eq(running & event.done),',
        f"{_CONTROL}/test_counters.py::test_only_ends_of_instructions_count_while_no_program_runs",
    ),
    Bug(
        "an interrupt flag is lost when it is set while it is cleared",
        "hw/control/registers.py",
        "value.eq((value & ~Mux(selected, data & mask, 0)) | getattr(self, name))",
        "value.eq((value | getattr(self, name)) & ~Mux(selected, data & mask, 0))",
        f"{_CONTROL}/test_registers.py::test_flags_are_set_and_cleared_in_the_same_cycle",
    ),
    Bug(
        "a new event overwrites a pending flag",
        "hw/control/registers.py",
        "value.eq((value & ~Mux(selected, data & mask, 0)) | getattr(self, name))",
        "value.eq(Mux(getattr(self, name).any(), getattr(self, name), value & ~Mux(selected, data & mask, 0)))",
        f"{_CONTROL}/test_registers.py::test_flags_are_set_and_cleared_in_the_same_cycle",
    ),
    Bug(
        "the base register has no bits above 36",
        "hw/control/registers.py",
        "return (1 << (params.axi_addr_bits - DATA_BITS)) - 1",
        "return (1 << min(params.axi_addr_bits - DATA_BITS, 4)) - 1",
        f"{_CONTROL}/test_registers.py::test_the_base_has_every_address_bit",
    ),
    Bug(
        "bursts ignore high bits of the base",
        "hw/dma/bursts.py",
        "start = (self.base + self.i.payload.offset)[: len(self.base)]",
        "start = (self.base[:26] + self.i.payload.offset)[: len(self.base)]",
        "tests/hw/dma/test_bursts.py::test_bursts_follow_their_model_and_obey_axi",
    ),
    Bug(
        "the store unit is idle in the cycle of `done`",
        "hw/dma/store.py",
        "self.unit.idle.eq(~bursts & (~instructions | self.unit.halt) & ~self.unit.done),",
        "self.unit.idle.eq(~bursts & (~instructions | self.unit.halt)),",
        "tests/hw/dma/test_store.py::test_every_word_reaches_memory_in_legal_bursts",
    ),
    Bug(
        "the load unit counts an instruction twice that issues in the cycle of `done`",
        "hw/dma/load.py",
        "with m.If(issued & ~self.unit.done):",
        "with m.If(issued):",
        "tests/hw/dma/test_load.py::test_an_instruction_may_issue_in_the_cycle_in_which_another_is_done",
    ),
    Bug(
        "output columns are counted in 8 bits",
        "hw/mac/output/output_walker.py",
        'DownCounter(COORDINATE_BITS, "columns")',
        'DownCounter(8, "columns")',
        f"{_MAC}/output/test_output_walker.py::test_every_member_of_a_walk_has_its_whole_width",
    ),
    Bug(
        "pixels are compared with 8 bits of the input's width",
        "hw/mac/array/pixel_fetcher.py",
        "inside.eq(pixel.row_inside & (pixel.ix >= 0) & (pixel.ix < pixel.in_w))",
        "inside.eq(pixel.row_inside & (pixel.ix >= 0) & (pixel.ix < pixel.in_w[:8]))",
        f"{_MAC}/array/test_pixel_fetcher.py::test_the_widest_row_and_its_neighbors_are_read",
    ),
    Bug(
        "the loop over input blocks has 8 bits",
        "hw/mac/issue/tile_loops.py",
        "block, column, row = Signal(12), Signal(4), Signal(4)",
        "block, column, row = Signal(8), Signal(4), Signal(4)",
        f"{_MAC}/issue/test_tile_loops.py::test_every_bound_has_its_whole_width",
    ),
    Bug(
        "the loop over kernel rows has 3 bits",
        "hw/mac/issue/tile_loops.py",
        "block, column, row = Signal(12), Signal(4), Signal(4)",
        "block, column, row = Signal(12), Signal(4), Signal(3)",
        f"{_MAC}/issue/test_tile_loops.py::test_every_bound_has_its_whole_width",
    ),
    Bug(
        "runs are joined if 16 bits of their step agree",
        "hw/dma/runs.py",
        "rows_contiguous.eq(move.dram_s1 == move.n0),",
        "rows_contiguous.eq(move.dram_s1[:16] == move.n0[:16]),",
        "tests/hw/dma/test_runs.py::test_runs_are_contiguous_only_if_all_bits_agree",
    ),
    Bug(
        "planes are joined if 24 bits of their addresses agree",
        "hw/dma/runs.py",
        "Mux(state.runs.last, state.plane == end, rows_contiguous)",
        "Mux(state.runs.last, state.plane[:24] == end[:24], rows_contiguous)",
        "tests/hw/dma/test_runs.py::test_runs_are_contiguous_only_if_all_bits_agree",
    ),
    Bug(
        "the accumulators' feedback has 24 bits",
        "hw/mac/array/accumulators.py",
        "operand.eq(Mux(first[1], 0, column_sums.read_data))",
        "operand.eq(Mux(first[1], 0, column_sums.read_data[:24].as_signed()))",
        f"{_MAC}/array/test_accumulators.py::test_sums_use_all_bits_and_wrap",
    ),
    Bug(
        "the index of a fault has 15 bits",
        "hw/control/dispatch.py",
        "self.fault.index.eq(self.index),",
        "self.fault.index.eq(self.index[:15]),",
        f"{_CONTROL}/test_dispatch.py::test_an_index_has_every_bit",
    ),
    Bug(
        "a halt lasts half as long",
        "hw/control/run_control.py",
        "halted = Signal(HALT_LATENCY)",
        "halted = Signal(HALT_LATENCY // 2)",
        f"{_CONTROL}/test_run_control.py::test_a_halt_lasts_until_every_unit_has_seen_it",
    ),
    Bug(
        "the neighbor of a packed word is read behind the row's end",
        "hw/mac/array/pixel_fetcher.py",
        "& (neighbor >= 0) & (neighbor < pixel.in_w)",
        "& (neighbor >= 0) & (neighbor <= pixel.in_w)",
        f"{_MAC}/array/test_pixel_fetcher.py::test_the_widest_row_and_its_neighbors_are_read",
    ),
    Bug(
        "sums of windows have 17 bits",
        "hw/vector/pool.py",
        "Mux(self.tap.first, 0, before[lane].total) + byte)",
        "(Mux(self.tap.first, 0, before[lane].total) + byte)[:17].as_signed())",
        "tests/hw/vector/test_pool.py::test_a_sum_has_all_of_its_bits",
    ),
    Bug(
        "a program's length is cut to 19 bits",
        "hw/control/fetch.py",
        "count = Mux(self.length[COUNT_BITS:].any(), (1 << COUNT_BITS) - 1, self.length[:COUNT_BITS])",
        "count = self.length[: COUNT_BITS - 1]",
        f"{_CONTROL}/test_fetch.py::test_a_long_program_is_fetched_beyond_its_first_instructions",
    ),
    Bug(
        "the watchdog's limit has 16 bits",
        "hw/control/watchdog.py",
        "left.eq(Mux(quiet, left - 1, self.limit))",
        "left.eq(Mux(quiet, left - 1, self.limit[:16]))",
        f"{_CONTROL}/test_watchdog.py::test_every_bit_of_the_limit_counts",
    ),
    Bug(
        "the watchdog names an instruction that waits for another unit",
        "hw/engine.py",
        "waits = ~any_issued & queues.waits_loaded[unit]",
        "waits = queues.waits_loaded[unit]",
        "tests/sim/rtl/test_hang.py::test_a_unit_that_never_finishes_is_named_and_not_the_store_that_waits",
    ),
    Bug(
        "an error in a middle beat of a fetch is lost",
        "hw/control/dispatch.py",
        "m.d.sync += error.eq(error | self.words.payload.error)",
        "m.d.sync += error.eq(self.words.payload.error)",
        f"{_CONTROL}/test_dispatch.py::test_faults_stop_the_program",
    ),
    Bug(
        "columns of a depthwise kernel are counted in 7 bits",
        "hw/mac/issue/column_walker.py",
        'DownCounter(REACH_BITS, "columns_ahead")',
        'DownCounter(REACH_BITS - 1, "columns_ahead")',
        f"{_MAC}/issue/test_column_walker.py::test_every_member_has_its_whole_width",
    ),
    Bug(
        "least rows of a depthwise column lack their top bit",
        "hw/mac/issue/column_walker.py",
        'DownCounter(len(columns.column_rows), "rows_least")',
        'DownCounter(len(columns.column_rows) - 1, "rows_least")',
        f"{_MAC}/issue/test_column_walker.py::test_every_member_has_its_whole_width",
    ),
    Bug(
        "the sum of exponentials wraps",
        "hw/vector/softmax.py",
        "total.eq(after[:TOTAL_BITS] | after[-1].replicate(TOTAL_BITS))",
        "total.eq(after[:TOTAL_BITS])",
        f"{_VECTOR}/test_softmax.py::test_results_of_pixels",
    ),
    Bug(
        "the next pixel overwrites the divisor of divisions in flight",
        "hw/vector/softmax.py",
        "with m.If(in_flight[dividends - 2 + Divider.EARLY_STAGES]):",
        "with m.If(1):",
        f"{_VECTOR}/test_softmax.py::test_results_of_pixels",
    ),
    Bug(
        "a quotient above 255 wraps",
        "hw/vector/softmax.py",
        "byte.eq((shifted[:8] | shifted[8:].any().replicate(8)) ^ 0x80)",
        "byte.eq(shifted[:8] ^ 0x80)",
        f"{_VECTOR}/test_softmax.py::test_results_of_pixels",
    ),
    Bug(
        "channels of the last word are counted in 3 bits",
        "hw/vector/softmax.py",
        "< self.last_bytes)",
        "< self.last_bytes[:3])",
        f"{_VECTOR}/test_softmax.py::test_results_of_pixels",
    ),
    Bug(
        "the remainder of a division lacks its top bit",
        "hw/vector/divider.py",
        "remainder = Signal(signed(TOTAL_BITS + 1))",
        "remainder = Signal(signed(TOTAL_BITS))",
        f"{_VECTOR}/test_divider.py::test_quotients_are_rounded_down",
    ),
    Bug(
        "repeated pixels are counted with a bit less",
        "hw/vector/raster_walker.py",
        'DownCounter(REPEAT_BITS, "pixel_repeats")',
        'DownCounter(REPEAT_BITS - 1, "pixel_repeats")',
        f"{_VECTOR}/test_raster_walker.py::test_every_member_of_a_raster_has_its_whole_width",
    ),
    Bug(
        "addresses of planes lack their top bit",
        "hw/vector/raster_walker.py",
        "self._plane_addr = Signal(SCRATCH_BITS,",
        "self._plane_addr = Signal(SCRATCH_BITS - 1,",
        f"{_VECTOR}/test_raster_walker.py::test_every_member_of_a_raster_has_its_whole_width",
    ),
    *COUNTER_BUGS,
)


@dataclass(frozen=True)
class Result:
    """What came of planting all bugs, for the sign-off page."""

    date: str
    commit: str
    bugs: int
    not_found: tuple[str, ...]
    """Names of the bugs that their tests do not find."""


def write_result(result: Result, path: Path = RESULT) -> None:
    """Replace the result in the repository."""
    write_text(path, json.dumps(asdict(result), indent=1) + "\n")


def read_result(path: Path = RESULT) -> Result | None:
    """The result in the repository."""
    if not path.exists():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    return Result(**values | {"not_found": tuple(values["not_found"])})


def _copy(folder: Path) -> None:
    """The files of the repository, with its links."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def run_test(folder: Path, test: str) -> bool:
    """Whether a test passes in a copy of the repository; an error that is no failure of the test is raised."""
    # The copy comes before the installed package.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"{test} cannot run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def survivors(bugs: Sequence[Bug]) -> list[Bug]:
    """The bugs that their tests do not find, planted one by one in a copy of the repository."""
    found = []
    with temporary_folder("planted") as folder:
        _copy(folder)
        for bug in bugs:
            path = folder / bug.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")
            lives = run_test(folder, bug.test)
            path.write_text(text, encoding="utf-8")
            print(f"{'not found' if lives else 'found'}: {bug.name}", flush=True)
            found += [bug] * lives
    return found


def main() -> None:
    """Plant all bugs and record the result, or plant those whose names contain one of the given texts."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names")
    names = parser.parse_args().names
    chosen = [bug for bug in BUGS if not names or any(name in bug.name for name in names)]
    lost = survivors(chosen)
    if not names:
        today = datetime.now(UTC).date().isoformat()
        write_result(Result(today, present_commit(), len(chosen), tuple(bug.name for bug in lost)))
    if lost:
        sys.exit(f"{len(lost)} of {len(chosen)} planted bugs were not found")


if __name__ == "__main__":
    main()
