"""Everything that a user needs is exported from `intloom`, and importing the package loads none of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import intloom
from intloom.common import errors

PAGE = (Path(__file__).resolve().parents[2] / "docs/python.md").read_text()


def subclasses(base):
    return {base} | {c for direct in base.__subclasses__() for c in subclasses(direct)}


@pytest.mark.parametrize("name", sorted(intloom.__all__))
def test_every_exported_name_is_importable(name):
    values = {}
    exec(f"from intloom import {name}", values)
    assert values[name] is not None


@pytest.mark.parametrize("name", sorted({*intloom.__all__} - {"__version__"}))
def test_every_exported_name_is_documented(name):
    assert re.search(rf"`(intloom\.)?{name}\b", PAGE)


def test_every_error_is_exported():
    declared = {c.__name__ for c in subclasses(errors.IntloomError) if c.__module__ == errors.__name__}
    assert len(declared) > 10
    assert declared <= {*intloom.__all__}
    assert all(getattr(intloom, name) is getattr(errors, name) for name in declared)


def test_the_interface_is_all_that_is_listed():
    assert dir(intloom) == sorted(intloom.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'quantice'"):
        _ = intloom.quantice


def test_importing_the_package_loads_no_large_library():
    code = "import sys, intloom; print([m for m in ('numpy', 'onnxruntime', 'amaranth') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
