"""The import rules of docs/architecture.md, and the linter's banned-import tables derived from them.

`python -m tools.arrows` writes a `ruff.toml` into every part; a test checks that they are up to date and that every
import follows the rules.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "intloom"
LINKED = ("hw", "compiler", "sim")
"""Folders of the repository's top level that are imported as `intloom.hw`, ... through links in `intloom/`."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "intloom.common": (),
    "intloom.common.cache": ("intloom.common",),
    "intloom.hw.spec": ("intloom.common",),
    "intloom.hw": ("intloom.common", "intloom.hw.spec"),
    "intloom.compiler": ("intloom.common", "intloom.hw.spec"),
    "intloom.sim": (
        "intloom.common",
        "intloom.hw.spec",
        "intloom.hw.generate",
        "intloom.compiler.ir",
        "intloom.compiler.program",
    ),
    "intloom": ("intloom",),
}
"""What each part may import of the project besides itself."""

FOREIGN: dict[str, tuple[str, ...]] = {
    "intloom.common": ("amaranth", "cocotb", "numpy", "onnx", "onnxruntime"),
    "intloom.hw.spec": ("amaranth", "cocotb", "numpy", "onnx", "onnxruntime"),
    "intloom.hw": ("cocotb", "onnx", "onnxruntime"),
    "intloom.compiler": ("amaranth", "cocotb"),
}
"""Third-party libraries that a part must not import."""


def inside(name: str, part: str) -> bool:
    """Whether module `name` is `part` or lies in it."""
    return name == part or name.startswith(part + ".")


def part_of(name: str) -> str:
    """The row of the table that a module belongs to: the longest that fits."""
    return max((p for p in ALLOWED if inside(name, p)), key=len)


def folder_of(name: str) -> Path:
    """The real folder of a package, not the link to it."""
    parts = name.split(".")
    return ROOT.joinpath(*(parts[1:] if parts[1:2] and parts[1] in LINKED else parts))


def module_name(path: Path) -> str:
    """The dotted name under which a source file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    prefix = () if parts[0] == PACKAGE else (PACKAGE,)
    return ".".join([*prefix, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def source_files() -> list[Path]:
    """Every Python file of the package, each once."""
    return [p for folder in (*LINKED, PACKAGE) for p in sorted((ROOT / folder).rglob("*.py"))]


def violations(name: str, imported: set[str]) -> list[str]:
    """Imports that the table does not allow a module."""
    part = part_of(name)
    allowed = (*ALLOWED[part], part)
    wrong = [i for i in imported if inside(i, PACKAGE) and not any(inside(i, a) for a in allowed)]
    return sorted(wrong + [i for i in imported if any(inside(i, f) for f in FOREIGN.get(part, ()))])


def _children(package: str) -> list[str]:
    paths = sorted(folder_of(package).iterdir())
    found = [p for p in paths if (p.suffix == ".py" and p.stem != "__init__") or (p / "__init__.py").exists()]
    return [f"{package}.{p.stem}" for p in found]


def _banned_below(package: str, allowed: tuple[str, ...]) -> list[str]:
    """Modules below `package` that are not allowed, whole packages where possible."""
    names: list[str] = []
    for child in _children(package):
        if any(inside(child, a) for a in allowed):
            continue
        if any(inside(a, child) for a in allowed):
            names += _banned_below(child, allowed)
        else:
            names.append(child)
    return names


def banned(part: str) -> list[str]:
    """What a part may not import: whole packages where possible, else their forbidden modules."""
    return _banned_below(PACKAGE, (*ALLOWED[part], part))


def ruff_settings(part: str) -> str:
    """The text of the part's `ruff.toml`."""
    allowed = ", ".join(ALLOWED[part]) or "nothing else of the project"
    depth = len(folder_of(part).relative_to(ROOT).parts)
    lines = [
        "# Written by `make generated` from tools/arrows.py: do not edit.",
        f'extend = "{"../" * depth}pyproject.toml"',
        "",
        "[lint.flake8-tidy-imports.banned-api]",
        *(f'"{name}".msg = "{part} may import {allowed}"' for name in banned(part)),
        *(f'"{name}".msg = "{part} must not import {name}"' for name in FOREIGN.get(part, ())),
    ]
    return "\n".join(lines) + "\n"


def settings_path(part: str) -> Path:
    """The part's linter settings file."""
    return folder_of(part) / "ruff.toml"


LINTED = tuple(p for p in ALLOWED if p != PACKAGE)
"""Parts that may not import everything."""


def main() -> None:
    """Write the settings of every part."""
    for part in LINTED:
        settings_path(part).write_text(ruff_settings(part), encoding="utf-8")
        print(settings_path(part).relative_to(ROOT))


if __name__ == "__main__":
    main()
