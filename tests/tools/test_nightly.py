"""The nightly run has the full size of everything that `make test` has a smaller case of."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATES = "tests/hw/fpga/test_gates"
BITSTREAM = "tests/hw/fpga/board/test_bitstream.py"
RANDOM = "tests/sim/random_programs/test_random_programs.py"
DOCS = "tests/intloom/test_docs.py"
ALL_TESTS = "nightly or not evidence"
"""Expression of pytest: the tests of `make test`, and the full sizes, marked `nightly`, that it leaves out."""
SMALLER = {
    "tests/hw/npu/test_clock_gating.py::test_programs_of_every_instruction_change_no_output": (
        "tests/hw/npu/test_clock_gating.py::test_gated_clocks_change_no_output"
    ),
    f"{GATES}.py::test_the_netlist_runs_as_the_accelerator_does": (
        f"{GATES}_of_components.py::test_the_netlist_has_the_outputs_of_the_component"
    ),
    "tests/runtime/test_fuzz.py::test_libfuzzer_finds_nothing": (
        "tests/runtime/test_fuzz.py::test_the_corpus_is_harmless"
    ),
    f"{GATES}.py::test_products_in_the_form_for_synthesis_run_as_in_the_simulated_one": (
        "tests/hw/mac/array/test_product.py::test_both_forms_are_the_product_of_all_operands"
    ),
    f"{BITSTREAM}::test_a_blinker_is_packed_with_the_boards_pins": (
        f"{BITSTREAM}::test_the_commands_have_their_order_and_options"
    ),
    f"{BITSTREAM}::test_a_port_without_a_pin_is_an_error_and_leaves_no_bitstream": (
        f"{BITSTREAM}::test_a_slow_clock_is_an_error_and_leaves_no_bitstream"
    ),
    f"{RANDOM}::test_results_do_not_depend_on_registers_and_memories_before_the_reset": (
        "tests/hw/npu/test_coincidences.py::test_programs_run_after_any_events"
    ),
    "tests/sim/random_programs/test_wrapping_sums.py::test_sums_of_more_than_32_bits_wrap": (
        "tests/sim/random_programs/test_wrapping_sums.py::test_sums_of_more_than_20_bits_wrap"
    ),
    "tests/hw/formal/test_instructions.py::test_a_fault_of_the_rtl_is_found_in_its_kind": (
        "tests/hw/formal/test_instructions.py::test_a_change_of_one_field_is_found_in_every_kind"
    ),
    "tests/hw/formal/test_clear.py::test_a_counter_that_is_not_cleared_is_found": (
        "tests/hw/formal/test_clear.py::test_a_counter_that_is_not_cleared_is_found_by_valid_alone"
    ),
    "tests/hw/formal/test_window.py::test_what_is_right_is_not_refuted": (
        "tests/hw/formal/test_window.py::test_no_address_outside_the_window_reaches_the_bus"
    ),
    "tests/sim/rtl/test_memory_parity.py::test_random_programs_take_the_same_cycles": (
        "tests/sim/rtl/test_memory_parity.py::test_a_flip_ends_in_an_error_with_parity_and_in_wrong_bytes_without"
    ),
    "tests/sim/regress/test_dask.py::test_a_regression_runs_on_another_machine": (
        "tests/sim/regress/test_dask.py::test_a_killed_worker_loses_nothing"
    ),
    "tests/sim/regress/test_regress.py::test_every_fault_ends_in_its_own_error": (
        "tests/sim/random_programs/test_faults.py::test_a_fault_ends_in_its_error"
    ),
    "tests/sim/random_programs/test_writes.py::test_a_wrong_word_that_is_overwritten_later_is_found": (
        "tests/hw/formal/test_instructions.py::test_a_change_of_one_field_is_found_in_every_kind"
    ),
    "tests/sim/rtl/test_two_accelerators.py::test_two_accelerators_share_a_port": (
        "tests/hw/soc/test_axi_arbiter.py::test_every_master_gets_its_own_words"
    ),
    "tests/sim/parallel/test_dask.py::test_a_killed_worker_loses_nothing": (
        "tests/sim/regress/test_dask.py::test_a_killed_worker_loses_nothing"
    ),
    f"{DOCS}::test_the_tutorial_shows_what_its_blocks_print": (
        f"{DOCS}::test_the_tutorials_commands_run_for_a_narrow_picture"
    ),
    "tests/compiler/test_without_vnni.py::test_the_reference_is_exact_without_vnni": (
        "tests/compiler/test_reference.py::test_sums_of_the_largest_products_do_not_saturate"
    ),
    "tests/test_typing.py::test_mypy_resolves_types_of_linked_packages_in_a_users_script": (
        "tests/test_typing.py::test_links_lead_to_the_folders_of_the_repository"
    ),
}
"""Tests of which the nightly run has all cases, and those that `make test` has instead."""


_COLLECT = """
import sys, pytest

class Collector:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print("\\n@", item.get_closest_marker("nightly") is not None, item.nodeid.partition("[")[0])

pytest.main(["--collect-only", "-q", "-m", sys.argv[1], *sys.argv[2:]], plugins=[Collector()])
"""


def functions(expression: str) -> tuple[set[str], set[str]]:
    """Functions with cases of every day and with nightly ones, from files that name the marker or are named here."""
    files = {str(p) for p in (ROOT / "tests").rglob("test_*.py") if p != Path(__file__) and "nightly" in p.read_text()}
    files |= {str(ROOT / name.partition("::")[0]) for name in SMALLER.values()}
    command = [sys.executable, "-c", _COLLECT, expression, *sorted(files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"^@ (True|False) (\S+)", done.stdout, re.MULTILINE)
    return {name for marked, name in found if marked == "False"}, {name for marked, name in found if marked == "True"}


@pytest.mark.slow
def test_every_night_runs_the_full_sizes_and_make_test_a_smaller_case_of_each() -> None:
    command = re.search(r"tools.python_coverage .* -m \"(.*)\"; ", (ROOT / "Makefile").read_text())
    assert command is not None and command[1] == ALL_TESTS
    everyday, nightly = functions(ALL_TESTS)
    smaller = {SMALLER.get(name, name) for name in nightly}
    assert SMALLER.keys() <= nightly and smaller <= everyday, smaller - everyday
