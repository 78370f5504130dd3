"""Transfers between host and accelerator, with their cause."""

import json

import onnx
import pytest

from intloom.cli import main
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.flow.crossings import find_crossings
from intloom.hw.spec.params import preset
from tests.support.corpus import MODELS
from tests.support.corpus.builder import maker


@pytest.fixture
def model() -> onnx.ModelProto:
    return MODELS["If, computed"](maker("If, computed"))


def test_bytes_and_cycles(model):
    first, second = find_crossings(fold_model(from_proto(model, name="m")), preset("base"))
    # 3 and 8 channels fill one word of 16 bytes per pixel, 6 by 6 pixels.
    assert (first.bytes_in, first.bytes_out, first.cycles) == (576, 576, 72)
    assert (second.bytes_in, second.bytes_out) == (576, 576)
    assert not first.host_nodes
    assert "If_node" in " ".join(second.host_nodes)
    assert "If has no integer lowering" in second.remedy


def test_inspect_lists_them(model, tmp_path, capsys):
    onnx.save(model, tmp_path / "m.onnx")
    assert main(["inspect", str(tmp_path / "m.onnx")]) == 0
    assert "how to join it" in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", str(tmp_path / "m.onnx"), "--json"]) == 0
    assert [r["cycles"] for r in json.loads(capsys.readouterr().out)["regions"]] == [72, 72]
