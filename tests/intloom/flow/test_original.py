"""Distance from the user's own file: also where onnxruntime does not load it."""

import numpy as np

import intloom
from intloom.cli import main
from intloom.common.errors import ExitCode
from tests.support.corpus import MODELS
from tests.support.corpus.builder import maker


def test_a_file_that_onnxruntime_does_not_load_is_compared_in_its_integer_form(tmp_path, capsys):
    """`output_dtype` int8 without zero points is valid ONNX; onnxruntime binds its QLinearAdd to two types."""
    name, path = "output_dtype int8", tmp_path / "program.loom"
    program = intloom.compile(MODELS[name](maker(name)), "nano")
    program.save(path)
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, {"x": np.zeros((1, 3, 6, 6), np.float32)})
    record = session.last.record
    against = {c["against"] for c in record["checks"]}
    assert (record["mismatches"], against) == (0, {"golden", "onnxruntime"})
    assert record["original"]["error"].startswith("onnxruntime does not run the file itself: ")
    assert "\n" not in record["original"]["error"]
    assert main(["run", str(path), "--backend", "isa", "--check"]) == ExitCode.OK
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("onnxruntime does not run the file itself") == 1
