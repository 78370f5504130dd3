"""The reference on an x86 processor without VNNI, by emulation: other kernels of onnxruntime, and the same bytes."""

import os
import platform
import subprocess
import sys

import pytest

PROCESSOR = "EPYC-Milan"
TESTS = ("tests/compiler/test_reference.py", "tests/compiler/test_unrounded_results.py")
CHOSEN = "saturate or Gemm-Relu or Conv-None"
EMULATOR = ("qemu-x86_64", "-cpu", PROCESSOR)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.needs("qemu-user")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates an x86 processor for this Python")
def test_the_reference_is_exact_without_vnni() -> None:
    words = ("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", CHOSEN, *TESTS)
    quiet = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    command = [*EMULATOR, sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
