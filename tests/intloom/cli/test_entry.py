"""Streams that the caller closed, or stops reading, are no fault of ours."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from intloom.cli import main

INTLOOM = f"{sys.executable} -m intloom"


def shell(command):
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["--help", "zoo build --help", "zoo list --json"])
def test_a_reader_that_reads_one_line_is_no_error(words):
    done = shell(f"{INTLOOM} {words} | head -1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["zoo list", "zoo list --json", "--help"])
def test_a_closed_output_is_no_error(words):
    done = shell(f"{INTLOOM} {words} >&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_version_is_an_option_too(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"intloom {version('intloom')}\n"


def test_with_closed_errors_the_exit_code_tells():
    done = shell(f"{INTLOOM} frobnicate 2>&-")
    assert (done.returncode, done.stdout) == (2, "")
