"""The Python interface: in onnxruntime's manner, equal to it, and readable in a notebook."""

import numpy as np
import onnxruntime as ort
import pytest

import intloom
from intloom.common.errors import MismatchError, UsageError
from intloom.images import synthetic_batch


@pytest.fixture(scope="module")
def model(quantized_models):
    return quantized_models("mini_yolo", 32)


@pytest.fixture(scope="module")
def program(model):
    return intloom.compile(model, preset="nano")


@pytest.fixture
def image():
    return synthetic_batch(1, 32, 32, 4)


def test_a_saved_program_is_the_same_program(program, image, tmp_path):
    program.save(tmp_path / "p.loom")
    loaded = intloom.Program.load(tmp_path / "p.loom")
    assert loaded.program.instructions == program.program.instructions
    one, other = (intloom.Session(p, backend="isa").run(["output0"], {"images": image})[0] for p in (program, loaded))
    np.testing.assert_array_equal(one, other)
    loaded.save(tmp_path / "again.loom")
    for name in ("p.loom", "p.loom.onnx"):
        assert (tmp_path / name.replace("p", "again", 1)).read_bytes() == (tmp_path / name).read_bytes()


def test_without_the_model_the_accelerators_own_outputs_come_back(program, image, tmp_path):
    program.save(tmp_path / "p.loom")
    (tmp_path / "p.loom.onnx").unlink()
    session = intloom.Session(tmp_path / "p.loom", backend="isa")
    (name,) = (i.name for i in session.get_inputs())
    outputs = session.run(None, {name: image})
    assert len(outputs) == len(program.folded.graph.outputs)
    with pytest.raises(UsageError, match="--model"):
        intloom.Session(tmp_path / "p.loom", backend="golden")


def test_intermediate_tensors_are_compared_when_they_are_kept(model, image):
    kept = intloom.compile(model, preset="nano", keep_intermediates=True)
    session = intloom.Session(kept, backend="isa", check=True)
    session.run(None, {"images": image})
    compared = {c["tensor"] for c in session.last.record["checks"] if c["against"] == "golden"}
    assert len(compared) > len(kept.folded.graph.outputs)
    assert sum(layer["compared_bytes"] > 0 for layer in session.last.record["layers"]) > 10


def test_a_wrong_byte_is_an_error_that_names_it(program, image, monkeypatch):
    session = intloom.Session(program, backend="isa", check=True)
    run = session._backend.run

    def tampered(*arguments, **options):
        result = run(*arguments, **options)
        array = next(iter(result.outputs.values()))
        array[0, 0, 0, 0] ^= 1
        return result

    monkeypatch.setattr(session._backend, "run", tampered)
    with pytest.raises(MismatchError, match=r"\[0, 0, 0, 0\]: expected") as caught:
        session.run(None, {"images": image})
    error, found = caught.value, session.last.record["first_divergence"]
    assert (error.coordinate, error.cycle) == ((0, 0, 0, 0), None)
    assert error.got == error.expected ^ 1
    layer = program.program.layers[found["layer_index"]]
    assert (error.layer, error.node) == (layer.name, ", ".join(layer.origin))
    assert error.tensor in program.folded.graph.outputs
    assert found["text"].split()[0] == str(program.program.instructions[error.instruction].kind.name)


def test_unknown_names_are_refused(program, image):
    with pytest.raises(UsageError, match="backend must be one of"):
        intloom.Session(program, backend="fpga")
    with pytest.raises(UsageError, match="output must be one of"):
        intloom.Session(program, backend="isa").run(["boxes"], {"images": image})
    with pytest.raises(UsageError, match="match must be one of"):
        intloom.compile("any.onnx", match="nearly")
    with pytest.raises(AttributeError, match="nothing"):
        _ = intloom.nothing


def test_notebook_views_name_layers_and_result(program, image):
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, {"images": image})
    assert "/model.0/conv/Conv" in program._repr_html_()
    assert "MaxPool" in program.graph._repr_html_()
    assert "bit-exact" in session.last._repr_html_()
    assert "nano" in repr(program)


def test_a_run_can_be_kept_with_its_report(program, image, tmp_path):
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, {"images": image})
    page = session.last.report(tmp_path / "run")
    assert page.read_text().startswith("<!doctype html>")
    kept = np.load(tmp_path / "run" / "output0.npy")
    np.testing.assert_array_equal(kept, session.last.outputs["output0"])


def test_a_graph_is_saved_as_text_or_as_onnx(program, tmp_path):
    program.graph.save(tmp_path / "graph.json")
    program.graph.save(tmp_path / "graph.onnx")
    names = {i.name for i in ort.InferenceSession(tmp_path / "graph.onnx").get_inputs()}
    assert names == set(program.folded.graph.inputs)
    assert program.folded.graph.nodes[0].name in (tmp_path / "graph.json").read_text()


@pytest.mark.parametrize(
    ("names", "feeds", "said"),
    [
        (None, None, "dictionary"),
        (None, [np.zeros((1, 3, 32, 32))], "dictionary"),
        (None, {"images": [[1], [1, 2]]}, "must be an array"),
        (None, {"images": np.zeros((1, 3, 32, 32), bool)}, "bool"),
        (None, {"images": np.full((1, 3, 32, 32), np.nan, np.float32)}, "NaN"),
        ("output0", {"images": np.zeros((1, 3, 32, 32))}, "must be a list"),
    ],
)
def test_wrong_feeds_are_refused_by_name(program, names, feeds, said):
    with pytest.raises(UsageError, match=said):
        intloom.Session(program, backend="golden").run(names, feeds)


def test_a_program_is_not_saved_over_its_model(model):
    before = model.read_bytes()
    with pytest.raises(UsageError, match="another file"):
        intloom.compile(model, preset="nano").save(model)
    assert model.read_bytes() == before
