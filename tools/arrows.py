"""The import arrows of docs/architecture.md, and the linter's banned-import tables made from them.

`python -m tools.arrows` writes a `ruff.toml` into every part; a test checks that they are fresh and that every import
follows the arrows.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("hw", "compiler", "sim", "intloom")

ALLOWED: dict[str, tuple[str, ...]] = {
    "hw.spec": (),
    "hw": ("hw.spec",),
    "compiler": ("hw.spec",),
    "sim": ("hw.spec", "hw.generate", "compiler.ir", "compiler.program", "compiler.custom"),
    "intloom": PACKAGES,
}
"""What each part may import of the project besides itself."""

FOREIGN: dict[str, tuple[str, ...]] = {
    "hw.spec": ("amaranth", "cocotb", "numpy", "onnx", "onnxruntime"),
    "hw": ("cocotb", "onnx", "onnxruntime"),
    "compiler": ("amaranth", "cocotb"),
}
"""Outside libraries that a part must do without."""


def inside(name: str, part: str) -> bool:
    """Whether module `name` is `part` or lies in it."""
    return name == part or name.startswith(part + ".")


def part_of(name: str) -> str:
    """The row of the table that a module belongs to: the longest that fits."""
    return max((p for p in ALLOWED if inside(name, p)), key=len)


def violations(name: str, imported: set[str]) -> list[str]:
    """Imports that the table does not allow a module."""
    part = part_of(name)
    allowed = (*ALLOWED[part], part)
    ours = [i for i in imported if i.split(".")[0] in PACKAGES]
    wrong = [i for i in ours if not any(inside(i, a) for a in allowed)]
    return sorted(wrong + [i for i in imported if any(inside(i, f) for f in FOREIGN.get(part, ()))])


def _children(package: str) -> list[str]:
    paths = sorted((ROOT / package).iterdir())
    found = [
        p
        for p in paths
        if (p.suffix == ".py" and p.stem not in ("__init__", "__main__")) or (p / "__init__.py").exists()
    ]
    return [f"{package}.{p.stem}" for p in found]


def banned(part: str) -> list[str]:
    """What a part may not import: whole packages where possible, else their forbidden modules."""
    allowed = (*ALLOWED[part], part)
    names: list[str] = []
    for package in PACKAGES:
        if not any(inside(a, package) for a in allowed):
            names.append(package)
        elif not inside(package, part) and package not in allowed:
            names += [c for c in _children(package) if not any(inside(c, a) for a in allowed)]
    return names


def ruff_settings(part: str) -> str:
    """The text of the part's `ruff.toml`."""
    allowed = ", ".join(ALLOWED[part]) or "nothing of the project"
    lines = [
        "# Written by `make generated` from tools/arrows.py: do not edit.",
        f'extend = "{"../" * len(part.split("."))}pyproject.toml"',
        "",
        "[lint.flake8-tidy-imports.banned-api]",
        *(f'"{name}".msg = "{part} may import {allowed}"' for name in banned(part)),
        *(f'"{name}".msg = "{part} must do without {name}"' for name in FOREIGN.get(part, ())),
    ]
    return "\n".join(lines) + "\n"


def settings_path(part: str) -> Path:
    """Where the part's linter settings stand."""
    return ROOT.joinpath(*part.split("."), "ruff.toml")


LINTED = tuple(p for p in ALLOWED if p != "intloom")
"""Parts that may not import everything."""


def main() -> None:
    """Write the settings of every part."""
    for part in LINTED:
        settings_path(part).write_text(ruff_settings(part), encoding="utf-8")
        print(settings_path(part).relative_to(ROOT))


if __name__ == "__main__":
    main()
