"""The layout of the tests: each folder corresponds to a source folder, or to a purpose that is named here."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PURPOSES = {
    "support": "builders and assertions that several test folders share",
    "support/corpus": "small models of every form of quantization, with what the compiler makes of each",
    "hw/coverage": "programs that reach every point of the RTL's coverage; `make coverage` runs them",
    "hw/formal": "proofs with SymbiYosys about components of several folders",
    "hw/npu": "whole accelerator in cocotb",
    "intloom/yolo_scripts": "scripts as users of onnxruntime write them, run by a test of the session",
    "hw/generate": "the Verilog text and its checks by other tools",
}
"""Folders of tests without a source folder of the same name."""

_FILES = [p.relative_to(TESTS) for p in TESTS.rglob("*.py")]
FOLDERS = sorted({p.parent.as_posix() for p in _FILES if p.parent.parts})


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_tests_corresponds_to_a_source_folder(folder: str) -> None:
    assert (ROOT / folder).is_dir() != (folder in PURPOSES)


def test_every_purpose_has_its_folder() -> None:
    assert set(PURPOSES) <= set(FOLDERS)
