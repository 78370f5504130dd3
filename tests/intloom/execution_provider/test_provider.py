"""Sessions of onnxruntime itself with the provider: the bytes of `intloom.Session`, the partition of `inspect`."""

import gc
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import intloom
from intloom import execution_provider
from intloom.common.errors import EnvironmentFault, ParameterError, UsageError
from intloom.compiler.frontend import Target, fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.reference import open_session
from intloom.execution_provider.library import build
from intloom.images import synthetic_batch
from tests.compiler.importer.test_batch import BATCH, quantized
from tests.intloom.flow.test_regions import interrupted
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import random_feeds

BEFORE = """
import numpy as np
import onnxruntime
image = np.load("image.npy")
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
"""
AFTER = """
np.save("outputs.npy", outputs[0])
assigned = session.get_provider_graph_assignment_info()
print(sum(len(part.get_nodes()) for part in assigned if part.ep_name == provider))
"""
ACCELERATED = {Target.ARRAY, Target.VECTOR, Target.TABLE}


@pytest.fixture(scope="module")
def name():
    return intloom.register_execution_provider(preset="nano")


@pytest.fixture(scope="module")
def model(quantized_models):
    return quantized_models("mini_yolo", 32)


def recording():
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


def nodes_of(session, provider):
    """onnxruntime's own record of which nodes a provider took."""
    found = session.get_provider_graph_assignment_info()
    return {n.name for part in found if part.ep_name == provider for n in part.get_nodes()}


def test_the_recipe_of_the_manual_runs_on_the_accelerator(model, tmp_path):
    """As printed, in a folder of a user's own; only the preset and the record of assignments differ."""
    text = (Path(__file__).parents[3] / "docs/python.md").read_text()
    (recipe,) = re.findall(r"```python\n(import intloom\nimport onnxruntime as ort\n.*?)```", text, re.DOTALL)
    shutil.copy(model, tmp_path / "yolov8n.q.onnx")
    np.save(tmp_path / "image.npy", synthetic_batch(1, 32, 32, 5))
    recipe = recipe.replace('"base"', '"nano"').replace("providers=", "options, providers=")
    (tmp_path / "script.py").write_text(BEFORE + recipe + AFTER)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200, "nodes that onnxruntime assigned to the provider"
    expected = intloom.Session(model, preset="nano").run(None, {"images": np.load(tmp_path / "image.npy")})[0]
    assert np.load(tmp_path / "outputs.npy").tobytes() == expected.tobytes()


def test_a_session_that_assigns_nothing_to_the_provider_says_so(name, model, caplog):
    options = recording()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider", name])
    assert not nodes_of(session, name)
    assert "CPUExecutionProvider comes earlier in `providers`" in caplog.text
    caplog.clear()
    session = ort.InferenceSession(model, options, providers=[name, "CPUExecutionProvider"])
    assert nodes_of(session, name) and not caplog.text


def test_a_batch_runs_image_by_image(name, rng, tmp_path):
    onnx.save(quantized(np.random.default_rng(0)), tmp_path / "batch.onnx")
    image = np.frombuffer(rng.randbytes(BATCH * 8 * 6 * 6), np.uint8).reshape(BATCH, 8, 6, 6)
    session = ort.InferenceSession(tmp_path / "batch.onnx", recording(), providers=[name, "CPUExecutionProvider"])
    assert nodes_of(session, name)
    (expected,) = open_session((tmp_path / "batch.onnx").read_bytes()).run(None, {"image": image})
    assert len(np.unique(expected, axis=0)) == BATCH
    np.testing.assert_array_equal(session.run(None, {"image": image})[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["isa", "rtl"])
def test_every_backend_gives_the_same_bytes(name, quantized_models, backend):
    model = quantized_models("tiny")
    image = synthetic_batch(1, 16, 16, 1)
    outputs = []
    for options in ({}, {"backend": backend}):
        session = ort.InferenceSession(model, providers=[(name, options)])
        feed = session.get_inputs()[0].name
        outputs.append(session.run(None, {feed: image})[0])
    assert outputs[0].tobytes() == outputs[1].tobytes()


def test_the_partition_is_that_of_inspect(name, model):
    options = recording()
    # With optimizations, onnxruntime renames and removes nodes before it asks providers.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=[name])
    ours, host = nodes_of(session, name), nodes_of(session, "CPUExecutionProvider")
    folded = fold_model(load_model(model))
    targets = {a.name: a.target for a in folded.assignments}
    # onnxruntime duplicates a DequantizeLinear with several readers, so nodes without instructions are not compared.
    assert {n for n in ours if targets.get(n) in ACCELERATED} == {n for n, t in targets.items() if t in ACCELERATED}
    assert not {n for n in ours if targets.get(n) is Target.HOST}
    assert host >= {n for n, t in targets.items() if t is Target.HOST}
    assert len(ours) > 200


def test_regions_with_host_parts_between_them(name, rng, seed):
    model = interrupted(OnnxMaker(rng))
    session = ort.InferenceSession(model.SerializeToString(), recording(), providers=[name])
    parts = [p for p in session.get_provider_graph_assignment_info() if p.ep_name == name]
    assert len(parts) == len(fold_model(load_model(model)).regions) == 2
    feed = random_feeds(model, seed)
    expected = intloom.Session(model, preset="nano").run(None, feed)
    for ours, theirs in zip(session.run(None, feed), expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_threads_share_a_session(name, model):
    session = ort.InferenceSession(model, providers=[name])
    images = [synthetic_batch(1, 32, 32, seed) for seed in range(4)]
    alone = [session.run(None, {"images": image})[0] for image in images]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda image: session.run(None, {"images": image})[0], images))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(alone, together, strict=True))


def test_a_released_session_leaves_nothing(name, quantized_models):
    provider = execution_provider._registered[0]
    gc.collect()
    before = len(provider._eps)
    session = ort.InferenceSession(quantized_models("tiny"), providers=[name])
    assert len(provider._eps) == before + 1
    del session
    gc.collect()
    assert len(provider._eps) == before


@pytest.mark.parametrize(("change", "said"), [("open", "open dimension"), ("float", "intloom inspect")])
def test_other_models_run_on_the_host(name, model, float_models, change, said, caplog):
    if change == "open":
        proto = onnx.load(model)
        proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
        source = proto.SerializeToString()
    else:
        source = float_models("tiny")
    session = ort.InferenceSession(source, recording(), providers=[name])
    assert not nodes_of(session, name)
    assert said in caplog.text


def test_wrong_arguments_are_refused(name, quantized_models):
    with pytest.raises(UsageError, match="backend must be one of"):
        intloom.register_execution_provider(backend="fpga")
    with pytest.raises(ParameterError, match="nano"):
        intloom.register_execution_provider(preset="huge")
    for options, said in (({"backend": "fpga"}, "backend must be one of"), ({"board": "x"}, "backend, preset, config")):
        with pytest.raises(Exception, match=said) as caught:
            ort.InferenceSession(quantized_models("tiny"), providers=[(name, options)], enable_fallback=0)
        assert "UsageError" in str(caught.value)


def test_hardware_of_a_session_replaces_that_of_the_registration(name, quantized_models, tmp_path):
    (tmp_path / "mine.toml").write_text('preset = "nano"\nscratch_kib = 16\n')
    options = {"config": str(tmp_path / "mine.toml")}
    session = ort.InferenceSession(quantized_models("tiny"), providers=[(name, options)], enable_fallback=0)
    *_, ep = execution_provider._registered[0]._eps.values()
    assert ep.parts[0].session._program.params.scratch_kib == 16
    assert session.get_providers()[0] == name


def test_without_a_compiler_the_remedy_is_named(cache_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="apt-get install gcc"):
        build()
    assert not list(cache_folder.rglob("*.so"))
