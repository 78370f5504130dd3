"""Verilator's C++ files are joined into few of about equal size, each once, and compiled by its own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from intloom.sim.rtl.joined_sources import MAKEFILE, join_sources, library_sources

_CLASSES = r"""
VM_CLASSES_FAST += \
  Vtop \
  Vtop___024root__0 \
  Vtop___024root__1 \

VM_CLASSES_SLOW += \
  Vtop__ConstPool__0__Slow \

VM_SUPPORT_FAST += \
  Vtop__Dpi \

VM_SUPPORT_SLOW += \
  Vtop__Syms__Slow \

VM_GLOBAL_FAST += \
  verilated \
  verilated_vpi \

VM_GLOBAL_SLOW += \

"""
FAST = {"Vtop", "Vtop___024root__0", "Vtop___024root__1", "Vtop__Dpi"}


def _verilated(folder: Path, size: int) -> Path:
    (folder / "Vtop_classes.mk").write_text(_CLASSES)
    for name in FAST:
        (folder / f"{name}.cpp").write_text(" " * size)
    return folder


def _included(folder: Path, part: str) -> list[str]:
    lines = (folder / part).with_suffix(".cpp").read_text().splitlines()
    return [line.removeprefix('#include "').removesuffix('"') for line in lines]


@pytest.mark.parametrize(("size", "files"), [(1_000, 1), (300_000, 2)])
def test_small_models_are_one_file_and_large_ones_a_file_for_each_core(size: int, files: int, tmp_path: Path) -> None:
    parts = join_sources(_verilated(tmp_path, size), [Path("/own/main.cpp")], 2)
    fast = [p for p in parts if p.startswith("fast")]
    assert len(fast) == files
    shares = [_included(tmp_path, part) for part in fast]
    assert sorted(file for share in shares for file in share) == sorted(f"{name}.cpp" for name in FAST)
    assert max(map(len, shares)) - min(map(len, shares)) == 0, "equal files in equal shares"
    assert _included(tmp_path, "own.o") == ["/own/main.cpp"]
    assert _included(tmp_path, "slow.o") == ["Vtop__ConstPool__0__Slow.cpp", "Vtop__Syms__Slow.cpp"]
    assert f"parts: {' '.join(parts)}\n" in (tmp_path / MAKEFILE).read_text()


def test_the_library_is_what_verilator_lists(tmp_path: Path) -> None:
    assert library_sources(_verilated(tmp_path, 1)) == ["verilated.cpp", "verilated_vpi.cpp"]
