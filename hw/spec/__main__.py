"""Write every file generated from the specification: `python -m intloom.hw.spec [folder]`."""

import sys
from pathlib import Path

from intloom.hw.spec.params import preset
from intloom.hw.spec.render_c import c_headers
from intloom.hw.spec.render_manual import render_isa, render_parameters, render_registers
from intloom.hw.spec.render_rdl import render_rdl

HEADER_PRESET = "base"
"""The preset in the repository's C headers."""


def derived_files() -> dict[str, str]:
    """Path, relative to the repository's root, and text of every generated file."""
    return {
        **{f"include/{n}": text for n, text in c_headers(preset(HEADER_PRESET), HEADER_PRESET).items()},
        "include/intloom.rdl": render_rdl(),
        "docs/isa.md": render_isa(),
        "docs/registers.md": render_registers(),
        "docs/parameters.md": render_parameters(),
    }


def main() -> None:
    """Write the files below the folder named on the command line, or the current one."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, text in derived_files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_text(text, encoding="utf-8")
        new.replace(path)
        print(path)


if __name__ == "__main__":
    main()
