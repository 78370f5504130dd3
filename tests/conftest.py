"""What all tests share: replayable random seeds, hypothesis settings, quick tests before slow ones."""

import functools
import gc
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from intloom.sim.rtl.toolchain import find_tools
from intloom.sim.rtl.verilog import verilog_of

SEED_VARIABLE = "INTLOOM_SEED"

# Before the import of numpy. The golden model has small products: on a busy machine, threads of BLAS wait actively
# and take several times the processor time of one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: machines are shared and loaded, and time is not what a property is about. CI must give one result for one
# tree; other runs draw new cases.
settings.register_profile(
    "intloom",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("intloom")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's seed once; worker processes inherit it."""
    os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(1 << 32)))
    # Elaboration makes millions of objects: at Python's own threshold half of its time is garbage collection.
    gc.set_threshold(100_000, 50, 50)


def pytest_sessionfinish() -> None:
    """Write what coverage has counted: xdist kills a worker that takes more than ten seconds to end."""
    coverage = sys.modules.get("coverage")
    if coverage is not None and (counts := coverage.Coverage.current()) is not None:
        counts.save()


_PYTHON_PACKAGES = ("fusesoc", "litex")
_PROGRAMS = {name: name for name in ("iverilog", "chromium", "yosys", "gcc", "cpio")} | {
    "qemu-user": "qemu-x86_64", "qemu-system-x86": "qemu-system-x86_64", "busybox-static": "busybox",
}  # fmt: skip
"""A program of each package."""


@functools.cache
def _present(package: str) -> bool:
    """Whether an optional package of the system is there."""
    if package in _PYTHON_PACKAGES:
        return importlib.util.find_spec(package) is not None
    if package in _PROGRAMS:
        return shutil.which(_PROGRAMS[package]) is not None
    if package.endswith("riscv64-unknown-elf"):
        compiler = shutil.which("riscv64-unknown-elf-gcc")
        return (
            compiler is not None
            and not subprocess.run(
                [compiler, "--specs=picolibc.specs", "-E", "-x", "c", "/dev/null"], capture_output=True, check=False
            ).returncode
        )
    if package.endswith("opensta"):
        return shutil.which("sta") is not None and Path("/usr/share/qflow/tech/osu018").is_dir()
    if package == "liblz4-dev":
        return next(tool for tool in find_tools() if tool.name == "liblz4").ok
    if package == "linux-headers-amd64":
        return any(Path("/lib/modules").glob("*/build"))
    raise ValueError(f"no check for package {package!r}; add it here")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without an optional package a test is skipped by name on a user's machine; CI must have it."""
    for marker in item.iter_markers("needs"):
        package = marker.args[0]
        if not _present(package):
            command = "pip" if package in _PYTHON_PACKAGES else "apt-get"
            reason = f"{package} is missing: {command} install {package}"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def pytest_report_header() -> str:
    """Say how to run the same random cases again."""
    return f"replay random cases with {SEED_VARIABLE}={os.environ[SEED_VARIABLE]}"


_ON_REQUEST = ("evidence", "nightly")
"""Markers of tests that run only where the expression of `-m` names the marker."""


_EVIDENCE_SECONDS = 3 * 3600
"""Evidence takes minutes on an idle machine, and several times as long on one that does other work."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Quick tests first: mistakes show in seconds. Evidence and the sizes of the nightly run only on request."""
    missing = [marker for marker in _ON_REQUEST if marker not in str(config.option.markexpr)]
    left_out = [item for item in items if any(map(item.get_closest_marker, missing))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, missing))]
    for item in items:
        if item.get_closest_marker("evidence") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_EVIDENCE_SECONDS))
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture(scope="module")
def verilog_from_cache() -> Iterator[None]:
    """Packages take the Verilog from the cache; `tests/hw/generate` generates it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("intloom.hw.package.modules.generate_verilog", verilog_of)
        yield


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed of the test's own, the same in every run with the same `INTLOOM_SEED`; shown when the test fails."""
    value = zlib.crc32(f"{os.environ[SEED_VARIABLE]} {request.node.nodeid}".encode())
    print(f"{SEED_VARIABLE}={os.environ[SEED_VARIABLE]} gives this test seed {value}")
    return value


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Python's random numbers from `seed`."""
    return random.Random(seed)
