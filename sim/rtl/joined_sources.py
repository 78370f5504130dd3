"""Joins the C++ files that Verilator writes into a few: headers are most of what a compiler reads in each of them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from intloom.sim.rtl.build_steps import PREFIX

MAKEFILE = "parts.mk"
_SMALL_BYTES = 3_000_000
"""With less generated code than this there is one file for each core, and the headers are read once in each. Larger
models have more files, so that no core waits for long at the end."""
_SLOW_SHARE = 0.4
"""Time to compile a byte of slow code, relative to fast code."""
_OWN_BYTES = 350_000
"""Generated fast code that takes as long to compile as the benches' own files."""
_SLOW_FROM_HERE = '#pragma GCC optimize ("O0")\n#pragma clang optimize off\n'
"""Slow code runs once; to optimize it takes longer than to run it."""
_LIST = re.compile(r"^(VM_\w+) \+= \\\n((?:  \S+ \\\n)*)", re.MULTILINE)

_RULES = """# Verilator's rules, for few files without a precompiled header.
include {prefix}.mk
.PHONY: parts
parts: {parts}
slow.o: slow.cpp
	$(OBJCACHE) $(CXX) $(OPT_SLOW) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<
simulator: {parts} $(LIBRARY)
	$(LINK) $(LDFLAGS) $^ $(LOADLIBES) $(LDLIBS) $(LIBS) -o $@
"""


def join_sources(objects: Path, own: Sequence[Path], cores: int) -> list[str]:
    """Write joined sources and `MAKEFILE` into the folder that Verilator wrote; names of the object files.

    `own` are the C++ files beside the generated ones. The makefile's target `simulator` needs `LIBRARY`.
    """
    classes = _classes(objects)
    fast = [objects / f"{name}.cpp" for name in (*classes["VM_CLASSES_FAST"], *classes["VM_SUPPORT_FAST"])]
    slow = [objects / f"{name}.cpp" for name in (*classes["VM_CLASSES_SLOW"], *classes["VM_SUPPORT_SLOW"])]
    sizes = {file: file.stat().st_size for file in (*fast, *slow)}
    if sum(sizes.values()) < _SMALL_BYTES:
        costs = {file: sizes[file] * (_SLOW_SHARE if file in slow else 1) for file in sizes}
        shares = _shares(costs | dict.fromkeys(own, _OWN_BYTES / len(own)), cores)
        parts = {f"part{number}": files for number, files in enumerate(shares)}
    else:
        parts = {f"fast{number}": files for number, files in enumerate(_shares({f: sizes[f] for f in fast}, cores))}
        # The slow files last: they compile fastest.
        parts |= {"own": list(own), "slow": slow}
    for name, files in parts.items():
        quick = [f for f in files if f not in slow]
        text = _included(objects, quick)
        if len(quick) < len(files):
            text += _SLOW_FROM_HERE + _included(objects, [f for f in files if f in slow])
        (objects / f"{name}.cpp").write_text(text, encoding="utf-8")
    names = [f"{name}.o" for name in parts]
    (objects / MAKEFILE).write_text(_RULES.format(prefix=PREFIX, parts=" ".join(names)), encoding="utf-8")
    return names


def library_sources(objects: Path) -> list[str]:
    """Names of the files of Verilator's library that a simulator needs."""
    classes = _classes(objects)
    return [f"{name}.cpp" for name in (*classes["VM_GLOBAL_FAST"], *classes["VM_GLOBAL_SLOW"])]


def _classes(objects: Path) -> dict[str, list[str]]:
    text = (objects / f"{PREFIX}_classes.mk").read_text(encoding="utf-8")
    return {name: names.replace("\\", "").split() for name, names in _LIST.findall(text)}


def _included(objects: Path, files: Sequence[Path]) -> str:
    return "".join(f'#include "{file.name if file.parent == objects else file}"\n' for file in files)


def _shares(costs: Mapping[Path, float], cores: int) -> list[list[Path]]:
    """The files in shares of about equal cost, one for each core."""
    shares: list[list[Path]] = [[] for _ in range(cores)]
    for file in sorted(costs, key=lambda f: costs[f], reverse=True):
        min(shares, key=lambda share: sum(costs[f] for f in share)).append(file)
    return [share for share in shares if share]
