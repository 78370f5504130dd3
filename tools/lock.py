"""Write requirements.lock: exact versions with the SHA-256 of their files, for x86-64 and aarch64 Linux.

`python -m tools.lock VENV` asks pip in VENV which files it would install for the versions there. It asks a second time
for aarch64 where the file is for one machine only; without a wheel for aarch64 the lock has the x86-64 hash alone.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
_DRY_RUN = ("install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--disable-pip-version-check")
_GLIBC = range(36, 16, -1)
"""Minor versions of glibc 2 that Debian 12 runs, the newest first."""
_AARCH64 = (
    "--only-binary=:all:", "--python-version", "3.11.2", "--implementation", "cp",
    "--abi", "cp311", "--abi", "abi3", "--abi", "none",
    *(option for minor in _GLIBC for option in ("--platform", f"manylinux_2_{minor}_aarch64")),
    "--platform", "manylinux2014_aarch64",
)  # fmt: skip


def _files(python: Path, pins: list[str], *options: str) -> dict[str, dict[str, str]]:
    """File address and SHA-256 by pinned version."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        where = ("--target", folder) if options else ()
        subprocess.run(
            [python, "-m", "pip", *_DRY_RUN, "--report", report, *where, *options, *pins], check=True, text=True
        )
        installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    by_pin = zip(sorted(pins, key=_name), sorted(installs, key=lambda i: _name(i["metadata"]["name"])), strict=True)
    return {
        pin: {"url": i["download_info"]["url"], "hash": i["download_info"]["archive_info"]["hashes"]["sha256"]}
        for pin, i in by_pin
    }


def _name(pin: str) -> str:
    return pin.partition("==")[0].lower().replace("_", "-").replace(".", "-")


def _aarch64_hash(python: Path, pin: str) -> list[str]:
    try:
        return [_files(python, [pin], *_AARCH64)[pin]["hash"]]
    except subprocess.CalledProcessError:
        print(f"{pin} has no wheel for aarch64")
        return []


def locked(python: Path, pins: list[str]) -> str:
    """The lock file's lines for these versions."""
    entries = []
    for pin, file in _files(python, pins).items():
        everywhere = file["url"].endswith(("-any.whl", ".tar.gz"))
        hashes = {file["hash"], *([] if everywhere else _aarch64_hash(python, pin))}
        entries.append(" \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(hashes))]) + "\n")
    return "".join(entries)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(venv: Path) -> None:
    """Write the lock file from the versions installed in a virtual environment."""
    python = venv / "bin/python"
    pins = _output(python, "-m", "pip", "freeze", "--exclude-editable").splitlines()
    head = f"# Exact versions that `make` installs; written by `make lock` with {_output(python, '--version')}.\n"
    new = LOCK.with_name(f"{LOCK.name}.new")
    new.write_text(head + locked(python, pins), encoding="utf-8")
    new.replace(LOCK)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
