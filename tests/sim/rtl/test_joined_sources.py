"""Verilator's C++ files are joined into few of about equal size, each once, and compiled by its own rules."""

from pathlib import Path

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
SLOW = {"Vtop__ConstPool__0__Slow", "Vtop__Syms__Slow"}


def _verilated(folder: Path, size: int) -> Path:
    (folder / "Vtop_classes.mk").write_text(_CLASSES)
    for name in FAST | SLOW:
        (folder / f"{name}.cpp").write_text(" " * (size if name in FAST else 1_000))
    return folder


def _included(folder: Path, part: str) -> list[str]:
    lines = (folder / part).with_suffix(".cpp").read_text().splitlines()
    return [line.removeprefix('#include "').removesuffix('"') for line in lines]


def test_small_models_are_a_file_for_each_core(tmp_path: Path) -> None:
    parts = join_sources(_verilated(tmp_path, 300_000), [Path("/own/main.cpp")], 2)
    assert parts == ["part0.o", "part1.o"]
    shares = [_included(tmp_path, part) for part in parts]
    expected = [f"{name}.cpp" for name in (*FAST, *SLOW)] + ["/own/main.cpp"]
    assert sorted(f for share in shares for f in share if not f.startswith("#pragma")) == sorted(expected)
    fast = [len([f for f in share if f.removesuffix(".cpp") in FAST]) for share in shares]
    assert fast == [1, 3], "the own file takes as long as one of these"
    for share in shares:
        if "#pragma" in "".join(share):
            at = share.index('#pragma GCC optimize ("O0")') + 1
            assert share[at] == "#pragma clang optimize off"
            assert {f.removesuffix(".cpp") for f in share[at + 1 :]} <= SLOW, "only slow code is not optimized"
        assert share[-1].removesuffix(".cpp") in SLOW or not SLOW & {f.removesuffix(".cpp") for f in share}


def test_large_models_have_fast_files_for_each_core_and_others(tmp_path: Path) -> None:
    parts = join_sources(_verilated(tmp_path, 1_000_000), [Path("/own/main.cpp")], 2)
    assert parts == ["fast0.o", "fast1.o", "own.o", "slow.o"]
    shares = [_included(tmp_path, part) for part in parts[:2]]
    assert sorted(file for share in shares for file in share) == sorted(f"{name}.cpp" for name in FAST)
    assert [len(share) for share in shares] == [2, 2], "equal files in equal shares"
    assert _included(tmp_path, "own.o") == ["/own/main.cpp"]
    assert set(_included(tmp_path, "slow.o")) >= {f"{name}.cpp" for name in SLOW}
    assert f"parts: {' '.join(parts)}\n" in (tmp_path / MAKEFILE).read_text()


def test_the_library_is_what_verilator_lists(tmp_path: Path) -> None:
    assert library_sources(_verilated(tmp_path, 1)) == ["verilated.cpp", "verilated_vpi.cpp"]
