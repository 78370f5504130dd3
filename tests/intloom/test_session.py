"""`intloom.Session` in place of `onnxruntime.InferenceSession`."""

import random
import re
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from PIL import Image

import intloom
from intloom.common.errors import FileFormatError, UsageError
from intloom.compiler.reference import open_session
from intloom.images import synthetic_batch, synthetic_image
from tests.support.onnx_maker import OnnxMaker

SCRIPTS = sorted((Path(__file__).parent / "yolo_scripts").glob("*.py"))
FLOATS = np.zeros((1, 3, 32, 32), np.float32)


@pytest.fixture(scope="module")
def model(quantized_models, tmp_path_factory):
    """A quantized detector with the metadata that exporters of YOLOv8 write."""
    proto = onnx.load(quantized_models("mini_yolo", 32))
    onnx.helper.set_model_props(proto, {"names": str({i: f"class{i}" for i in range(80)}), "stride": "32"})
    proto.model_version = 3
    path = tmp_path_factory.mktemp("model") / "detector.onnx"
    onnx.save(proto, path)
    return path


@pytest.fixture(scope="module")
def session(model):
    return intloom.Session(model, preset="nano")


@pytest.fixture(scope="module")
def program_file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "detector.loom"
    intloom.compile(model, preset="nano").save(path)
    return path


@pytest.fixture(scope="module")
def theirs(model):
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "street.png"
    pixels = synthetic_image(48, 80, seed=3).transpose(1, 2, 0) * 255
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return path


def fields(args):
    return [(a.name, a.type, a.shape) for a in args]


def test_inputs_outputs_and_metadata_are_those_of_onnxruntime(session, theirs):
    assert fields(session.get_inputs()) == fields(theirs.get_inputs())
    assert fields(session.get_outputs()) == fields(theirs.get_outputs())
    ours, other = session.get_modelmeta(), theirs.get_modelmeta()
    for name in ("custom_metadata_map", "producer_name", "graph_name", "description", "domain", "version"):
        assert getattr(ours, name) == getattr(other, name)


@pytest.mark.parametrize("kind", ["path", "bytes", "proto", "loom", "loom bytes", "program"])
def test_every_source_gives_the_same_bytes(model, program_file, theirs, kind):
    source = {
        "path": str(model),
        "bytes": model.read_bytes(),
        "proto": onnx.load(model),
        "loom": program_file,
        "loom bytes": program_file.read_bytes(),
        "program": intloom.Program.load(program_file),
    }[kind]
    image = synthetic_batch(1, 32, 32, 5)
    if kind == "loom bytes":
        session = intloom.Session(source, backend="isa")
        (entry,) = session.get_inputs()
        assert len(session.run(None, {entry.name: image})) == len(session.get_outputs()) > 0
        return
    chosen = {"backend": "isa"} if "loom" in kind or kind == "program" else {"preset": "nano"}
    session = intloom.Session(source, **chosen)
    expected = open_session(model.read_bytes()).run(None, {"images": image})
    for names in (None, [], ["output0"], ("output0",)):
        np.testing.assert_array_equal(session.run(names, {"images": image})[0], expected[0])
    assert fields(session.get_outputs()) == fields(theirs.get_outputs())


def test_outputs_come_in_the_order_in_which_they_are_named():
    m = OnnxMaker(random.Random(4))
    image = m.image(3, 6, 6)
    m.output(*(m.conv(image, channels) for channels in (4, 5, 6)))
    session = intloom.Session(m.model(), backend="golden")
    feeds = {"image1": np.ones((1, 3, 6, 6), np.float32)}
    names = [o.name for o in session.get_outputs()]
    every = dict(zip(names, session.run(None, feeds), strict=True))
    assert len({v.shape for v in every.values()}) == 3
    for chosen in ([names[1]], names[::-1], [names[2], names[0]], [names[0], names[0]]):
        found = session.run(chosen, feeds)
        assert len(found) == len(chosen)
        for name, value in zip(chosen, found, strict=True):
            np.testing.assert_array_equal(value, every[name])


def test_a_model_in_memory_is_checked_compiled_and_saved(model, tmp_path):
    proto = onnx.load(model)
    before = proto.SerializeToString(deterministic=True)
    program = intloom.compile(proto, preset="nano")
    assert proto.SerializeToString(deterministic=True) == before
    checked = intloom.Session(program, backend="golden", check=True)
    checked.run(None, {"images": synthetic_batch(1, 32, 32, 5)})
    assert checked.last.record["compared_bytes"] > 0
    program.save(tmp_path / "p.loom")
    assert intloom.Program.load(tmp_path / "p.loom").folded is not None


@pytest.mark.parametrize(
    ("names", "feed", "said"),
    [
        (None, {"images": FLOATS.astype(np.uint8)}, r"must be tensor\(float\), not uint8"),
        (None, {"images": FLOATS.astype(np.float64)}, "must be .*not float64"),
        (None, {"images": FLOATS.astype(np.float16)}, "must be .*not float16"),
        (None, {"images": FLOATS[0]}, "must have rank 4 .*not rank 3"),
        (None, {"images": FLOATS[:, :, :16]}, r"must have shape \[1, 3, 32, 32\], not \[1, 3, 16, 32\]"),
        (None, {"image": FLOATS}, "input must be one of images, not 'image'"),
        (None, {"images": FLOATS, "more": FLOATS}, "not 'more'"),
        (None, {}, "'images' .*is missing"),
        (["boxes"], {"images": FLOATS}, "output must be one of output0, not 'boxes'"),
    ],
)
def test_what_onnxruntime_refuses_is_refused(session, theirs, names, feed, said):
    with pytest.raises(UsageError, match=said):
        session.run(names, feed)
    with pytest.raises(Exception, match=r"[Ii]nvalid|Unexpected|Required"):
        theirs.run(names, feed)


def test_lists_are_converted_as_in_onnxruntime(session, theirs):
    image = synthetic_batch(1, 32, 32, 5)
    np.testing.assert_array_equal(
        session.run(None, {"images": image.tolist()})[0], session.run(None, {"images": image})[0]
    )
    assert list(theirs.run(None, {"images": image.tolist()})[0].shape) == session.get_outputs()[0].shape


def test_an_unknown_output_is_found_before_the_run(session, monkeypatch):
    monkeypatch.setattr(session._backend, "run", lambda *_a, **_k: pytest.fail("the network was run"))
    with pytest.raises(UsageError, match="boxes"):
        session.run(["boxes"], {"images": FLOATS})


def test_threads_share_a_session(session):
    images = [synthetic_batch(1, 32, 32, seed) for seed in range(6)]
    alone = [session.run(None, {"images": image})[0] for image in images]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda image: session.run(None, {"images": image})[0], images))
    np.testing.assert_array_equal(np.stack(alone), np.stack(together))


@pytest.mark.parametrize("call", ["io_binding", "run_with_iobinding"])
def test_bound_buffers_are_refused_with_the_alternative(session, call):
    with pytest.raises(UsageError, match=rf"{call} .*run\(\)"):
        getattr(session, call)(*([None] if call == "run_with_iobinding" else []))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sess_options": "isa"}, "backend='isa'"),
        ({"providers": "CPUExecutionProvider"}, r"providers=\['CPUExecutionProvider'\]"),
        ({"preset": "nano"}, "preset cannot be set"),
    ],
)
def test_contradicting_arguments_are_refused(program_file, arguments, said):
    with pytest.raises(UsageError, match=said):
        intloom.Session(program_file, **arguments)


def test_other_sources_are_refused(tmp_path):
    (tmp_path / "text").write_text("no model")
    for source in (tmp_path / "text", tmp_path / "missing", b"no model"):
        with pytest.raises(FileFormatError):
            intloom.Session(source)
    with pytest.raises(UsageError, match="not int"):
        intloom.Session(5)


def test_objects_print_as_one_short_line(session, model, program_file, float_models, tmp_path):
    done = intloom.quantize(float_models("tiny"), tmp_path / "q.onnx", options=intloom.QuantizeOptions(samples=1))
    program = intloom.Program.load(program_file)
    for one in (done, session, program, program.program, program.bundle, program.folded):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 200
    assert "images [1, 3, 32, 32] -> output0" in repr(session)
    assert "nano on golden" in repr(session)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_for_onnxruntime_runs_with_one_import_changed(script, model, picture, tmp_path, monkeypatch, capsys):
    """The boxes are those of onnxruntime, and the script's text differs in one line."""
    text = script.read_text()
    changed = re.sub(r"^from onnxruntime import", "from intloom.onnxruntime import", text, flags=re.MULTILINE)
    changed = re.sub(r"^import onnxruntime as", "import intloom.onnxruntime as", changed, flags=re.MULTILINE)
    changed = re.sub(r"^import onnxruntime$", "from intloom import onnxruntime", changed, flags=re.MULTILINE)
    assert sum(a != b for a, b in zip(text.splitlines(), changed.splitlines(), strict=True)) == 1
    (tmp_path / "changed.py").write_text(changed)
    monkeypatch.setattr(sys, "argv", [str(script), str(model), str(picture)])
    # Plain onnxruntime saturates sums on processors without VNNI; the reference session does not.
    reference = open_session(model.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(ort, "InferenceSession", lambda *_a, **_k: reference)
        runpy.run_path(str(script), run_name="__main__")
    expected = capsys.readouterr().out
    runpy.run_path(str(tmp_path / "changed.py"), run_name="__main__")
    assert capsys.readouterr().out == expected
    assert len(expected.splitlines()) >= 3


def test_a_batch_runs_image_by_image(session):
    images = synthetic_batch(3, 32, 32, 5)
    whole = session.run(None, {"images": images})
    for number in range(3):
        for stacked, alone in zip(whole, session.run(None, {"images": images[number : number + 1]}), strict=True):
            np.testing.assert_array_equal(stacked[number : number + 1], alone)
    assert [o.shape[0] for o in whole] == [3] * len(whole)
    with pytest.raises(UsageError, match="must have shape"):
        session.run(None, {"images": images[:, :, :16]})
    with pytest.raises(UsageError, match="must have shape"):
        session.run(None, {"images": images[:0]})
