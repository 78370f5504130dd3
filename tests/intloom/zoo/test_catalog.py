"""The zoo has the published topologies, its models are reproducible, and their activations are alive."""

import numpy as np
import onnx
import pytest

from intloom.compiler.reference import open_session
from intloom.quantization.graph_values import with_values
from intloom.quantization.samples import input_specs, load_samples
from intloom.zoo import ZOO, build
from intloom.zoo.builder import Builder
from tests.intloom.zoo.test_weight_normalization import OTHER_SIZES_AND_HEADS
from tests.support.nightly import with_nightly

PUBLISHED_GMAC = {
    "yolov8n": 4.37,
    "yolov8s": 14.30,
    "yolov8m": 39.47,
    "resnet18": 1.814,
    "mobilenet_v2": 0.3008,
    "mobilenet_v3_large": 0.2166,
    "mobilenet_v4_conv_small": 0.186,
    "efficientnet_lite0": 0.3852,
    "shufflenet_v2": 0.1449,
    "yolo11n": 3.24,
    "yolo26n": 2.68,
    "yolo11n-seg": 4.87,
    "yolo11n-pose": 3.70,
    "yolo26n-seg": 4.56,
    "yolo26n-pose": 3.72,
    "ssd_mobilenet_v1": 1.235,
}
"""Multiply-accumulates of convolutions and fully connected layers at the published size, in thousands of millions."""
PUBLISHED_PARAMETERS = {
    "mobilenet_v3_large": 5.47,
    "mobilenet_v4_conv_small": 3.76,
    "efficientnet_lite0": 4.63,
    "shufflenet_v2": 2.27,
    "yolo11n": 2.616,
    "yolo11s": 9.44,
    "yolo26n": 2.41,
    "yolo11n-seg": 2.8687,
    "yolo11n-pose": 2.8665,
    "yolo26n-seg": 2.72,
    "yolo26n-pose": 2.92,
    "yolox_nano": 0.904,
    "ssd_mobilenet_v1": 6.81,
    "deit_tiny": 5.717,
    "mobilevit_xxs": 1.2702,
}
"""Weights and biases with batch normalization folded, in millions."""
LEARNED = (".weight", ".bias", "/weight", "/bias", "_token", "_embed")
"""Endings of the names of weights, biases and embeddings."""
PUBLISHED_CONVOLUTIONS = {"yolov8n": 64, "yolov8s": 64, "yolov8m": 84, "resnet18": 20, "mobilenet_v2": 52}
LEAST_CODES = 4
CONSTANT = {
    "yolo26n-pose": ("/model.23/best/Mod", "/model.23/best/Cast", "/model.23/best/Unsqueeze_3"),
    "minilm_l6": ("/Cast", "/Not", "/Cast_1", "/Reshape", "/Mul"),
}
"""The index of the class, of which there is one, and the mask of padding."""


def multiply_accumulates(model):
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.value_info}
    shapes |= {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.output}
    weights = {i.name: int(np.prod(i.dims)) for i in model.graph.initializer}
    total = 0
    for node in model.graph.node:
        if node.op_type in ("Conv", "ConvTranspose"):
            # Each weight of a transposed convolution is used once for each input pixel: its kernel equals its stride.
            pixels = shapes[node.output[0] if node.op_type == "Conv" else node.input[0]][2:]
            total += weights[node.input[1]] * int(np.prod(pixels))
        elif node.op_type == "Gemm":
            total += weights[node.input[1]]
    return total


PUBLISHED = sorted(PUBLISHED_GMAC.keys() | PUBLISHED_PARAMETERS)


@pytest.mark.parametrize("name", with_nightly(PUBLISHED, OTHER_SIZES_AND_HEADS))
def test_work_and_size_match_the_published_network(name):
    builder = Builder(name, 0)  # without the normalization of the weights, which runs the network
    ZOO[name].make(builder, ZOO[name].default_size)
    model = builder.finish()
    if name in PUBLISHED_GMAC:
        assert multiply_accumulates(model) / 1e9 == pytest.approx(PUBLISHED_GMAC[name], rel=0.002)
    if name in PUBLISHED_PARAMETERS:
        stored = [int(np.prod(i.dims)) for i in model.graph.initializer if i.name.endswith(LEARNED)]
        assert sum(stored) / 1e6 == pytest.approx(PUBLISHED_PARAMETERS[name], rel=0.003)
    if name in PUBLISHED_CONVOLUTIONS:
        assert sum(n.op_type == "Conv" for n in model.graph.node) == PUBLISHED_CONVOLUTIONS[name]


def run_all(model, feeds):
    """Every tensor of a model for one set of inputs."""
    names = [o for n in model.graph.node for o in n.output]
    return dict(zip(names, open_session(with_values(model, names).SerializeToString()).run(names, feeds), strict=True))


@pytest.mark.parametrize("name", with_nightly(sorted(ZOO), (*OTHER_SIZES_AND_HEADS, "minilm_l6", "deit_tiny")))
def test_every_model_is_valid_and_alive(name):
    size = ZOO[name].multiple * 2 if ZOO[name].multiple > 8 else 32
    model = build(name, size, seed=3)
    onnx.checker.check_model(model, full_check=True)
    for tensor, value in run_all(model, load_samples(input_specs(model), None, 1, 5)[0]).items():
        assert np.isfinite(value).all(), tensor
        if tensor.removesuffix("_output_0") in CONSTANT.get(name, ()):
            continue
        assert np.unique(value).size >= min(LEAST_CODES, value.size), f"{tensor} is stuck"


@pytest.mark.parametrize("name", ["yolov8n-pose", "yolo11n-pose", "yolo26n-pose"])
def test_key_points_are_pixels_and_a_visibility(name):
    """17 points of each of 84 cells; end-to-end networks list cells along rows, with the class behind the score."""
    (found,) = outputs(name)
    rows = found[0] if "26" in name else found[0].T
    assert rows.shape == (84, 57 if "26" in name else 56)
    points = rows[:, -51:].reshape(84, 17, 3)
    assert 0 <= points[..., 2].min() < points[..., 2].max() <= 1
    assert 0 <= rows[:, 4].min() <= rows[:, 4].max() <= 1
    # With random weights, points lie around the cells, of which half are 8 pixels and more from the border.
    assert 8 < np.median(points[..., :2]) < 56


@pytest.mark.parametrize("name", ["yolov8n-seg", "yolo11n-seg", "yolo26n-seg"])
def test_masks_have_coefficients_of_each_cell_and_prototypes(name):
    cells, prototypes = outputs(name)
    assert cells.shape == ((1, 84, 38) if "26" in name else (1, 116, 84))
    assert prototypes.shape == (1, 32, 16, 16)
    assert np.isfinite(cells).all()
    assert np.ptp(prototypes) > 0


def outputs(name):
    session = open_session(build(name, 64, 0).SerializeToString())
    image = np.random.default_rng(0).random((1, 3, 64, 64), np.float32)
    return session.run(None, {session.get_inputs()[0].name: image})


def test_same_seed_same_bytes_and_other_seed_other_weights():
    first, again, other = build("c2f", seed=1), build("c2f", seed=1), build("c2f", seed=2)
    assert first.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
    assert first.SerializeToString(deterministic=True) != other.SerializeToString(deterministic=True)


def test_node_names_are_those_of_real_exports():
    names = {n.name for n in build("yolov8n", 32).graph.node}
    expected = {
        "/model.0/conv/Conv",
        "/model.2/m.0/cv1/conv/Conv",
        "/model.9/m_2/MaxPool",
        "/model.10/Resize",
        "/model.22/cv3.2/cv3.2.2/Conv",
        "/model.22/dfl/conv/Conv",
    }
    assert expected <= names
