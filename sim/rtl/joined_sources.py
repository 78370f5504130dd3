"""Joins the C++ files that Verilator writes into a few: headers are most of what a compiler reads in each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from intloom.sim.rtl.build_steps import PREFIX

MAKEFILE = "parts.mk"
_SPLIT_BYTES = 1_000_000
"""Generated code of less than this is one file: a second one costs more for its headers than it saves on two cores."""
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
    parts = {f"fast{number}": files for number, files in enumerate(_shares(fast, cores))}
    # The slow files last: they compile fastest.
    parts |= {"own": list(own), "slow": slow}
    for name, files in parts.items():
        text = "".join(f'#include "{file.name if file.parent == objects else file}"\n' for file in files)
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


def _shares(files: Sequence[Path], cores: int) -> list[list[Path]]:
    """The files in shares of about equal size, one for each core."""
    sizes = {file: file.stat().st_size for file in files}
    if sum(sizes.values()) < _SPLIT_BYTES:
        return [list(files)]
    shares: list[list[Path]] = [[] for _ in range(cores)]
    for file in sorted(files, key=lambda f: sizes[f], reverse=True):
        min(shares, key=lambda share: sum(sizes[f] for f in share)).append(file)
    return [share for share in shares if share]
