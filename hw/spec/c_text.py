"""Parts of C headers that all renderers use."""

from collections.abc import Iterable
from enum import IntEnum


def header(
    name: str,
    about: str,
    body: Iterable[str],
    includes: Iterable[str] = (),
    *,
    written_by: str = "`make generated` from hw/spec",
) -> str:
    """A C header: a comment on what it is, include guard, includes, body."""
    guard = name.upper().replace(".", "_")
    lines = [f"/* Written by {written_by}: do not edit.", " *"]
    lines += [f" * {line}".rstrip() for line in about.strip().splitlines()]
    lines += [" */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += [*(f"#include {i}" for i in includes), ""] if includes else []
    return "\n".join([*lines, *body, "#endif"]) + "\n"


def int_enum(name: str, members: type[IntEnum]) -> str:
    """A C enumeration with the members of a Python one."""
    return enum(name, name.upper(), ((m.name, int(m)) for m in members))


def enum(name: str, prefix: str, values: Iterable[tuple[str, int]]) -> str:
    """A C enumeration `intloom_<name>` of constants `INTLOOM_<prefix>_<key>`."""
    lines = [f"    INTLOOM_{prefix}_{key} = {value}," for key, value in values]
    return f"enum intloom_{name} {{\n" + "\n".join(lines) + "\n};\n"
