"""Chooses tests in which highest bits of counting registers rise: `python -m tools.coverage.evidence FOLDER...`.

Each folder has the recordings of one run of the benches, with a seed of its own:
`INTLOOM_COUNTING_REGISTERS=FOLDER INTLOOM_SEED=1 pytest tests/hw`. A test is chosen for a register only if the bit
rises in it with every seed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from intloom.common.atomic_write import write_text
from tests.hw.top_bits_seen import EVIDENCE
from tools.coverage.counting_registers import all_keys

_HEADER = """\
# Tests, each with the counting registers whose highest bits rise in it: the test fails if one of them stays 0.
# Registers without a test have waivers of kind `register` in tools/coverage/waivers.yaml. Written by
# tools/coverage/evidence.py.
"""


def recorded(folders: Iterable[Path]) -> dict[str, set[str]]:
    """For every test, the registers that rise in all of its recordings."""
    found: dict[str, set[str]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        run = json.loads(path.read_text(encoding="utf-8"))
        keys = set(run["keys"])
        found[run["test"]] = found.get(run["test"], keys) & keys
    return found


def chosen(seen: Mapping[str, set[str]], wanted: set[str]) -> dict[str, list[str]]:
    """Few tests in which all of `wanted` rise that rise anywhere."""
    found: dict[str, list[str]] = {}
    left = set(wanted)
    while left:
        test = max(sorted(seen), key=lambda name: len(seen[name] & left))
        if not seen[test] & left:
            break
        found[test] = sorted(seen[test] & left)
        left -= seen[test]
    return dict(sorted(found.items()))


def main() -> None:
    """Write the chosen tests, and print registers that have none."""
    parser = argparse.ArgumentParser(prog="python -m tools.coverage.evidence", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    wanted = set(all_keys())
    found = chosen(recorded(parser.parse_args().folders), wanted)
    write_text(EVIDENCE, _HEADER + yaml.safe_dump(found, width=200, sort_keys=False))
    for key in sorted(wanted - {key for keys in found.values() for key in keys}):
        print(f"no test: {key}")


if __name__ == "__main__":
    main()
