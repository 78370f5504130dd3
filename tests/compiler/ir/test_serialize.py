"""Graphs as files for people and as ONNX; broken graphs are refused."""

import base64
import json
import random
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from intloom.common.errors import ModelError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import Conv, IntGraph, Tensor
from intloom.compiler.ir.onnx_export import to_onnx
from intloom.compiler.ir.serialize import save
from intloom.compiler.ir.verify import verify
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import run_onnxruntime
from tests.support.random_model import random_model


def small_graph(rng: random.Random) -> IntGraph:
    m = OnnxMaker(rng)
    x = m.silu(m.conv(m.image(3, 8, 8), 8))
    y = m.binary("Add", x, m.conv(x, 8))
    (mean,) = m.node("GlobalAveragePool", [y.name])
    m.output(m.concat([x, m.resize(m.maxpool(y, 3, 2))]), m.pair(mean, (1, 8, 1, 1), y.scale))
    return fold_model(from_proto(m.model(), name="small")).graph


def random_inputs(graph: IntGraph, seed: int) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(seed)
    return {n: noise.integers(-128, 128, graph.tensors[n].shape).astype(np.int8) for n in graph.inputs}


def test_a_saved_graph_has_all_fields_of_its_nodes(rng: random.Random, tmp_path: Path) -> None:
    graph = small_graph(rng)
    save(graph, tmp_path / "g.json")
    saved = json.loads((tmp_path / "g.json").read_text())
    assert [t["name"] for t in saved["tensors"]] == list(graph.tensors)
    for node, values in zip(graph.nodes, saved["nodes"], strict=True):
        assert values.pop("kind") == type(node).__name__
        assert set(values) == {f.name for f in fields(node)}
        if isinstance(node, Conv):
            data, stored = base64.b64decode(values["weights"]["data"]), values["weights"]
            np.testing.assert_array_equal(np.frombuffer(data, stored["dtype"]).reshape(stored["shape"]), node.weights)
    assert [p.name for p in tmp_path.iterdir()] == ["g.json"]


def test_the_verifier_names_node_and_rule(rng: random.Random) -> None:
    graph = small_graph(rng)
    conv = graph.nodes[0]
    assert isinstance(conv, Conv)
    broken = {
        "zp_in must be": replace(conv, zp_in=conv.zp_in + 1),
        "weights must cover": replace(conv, group=2),
        "table must have 256": replace(conv, table=b"short"),
        "its result must be": replace(conv, strides=(2, 2)),
        "made before it": replace(conv, inputs=("nowhere",)),
        "bias must be one per channel": replace(conv, bias=conv.bias[1:]),
        "shift must be at most": replace(conv, shift=np.full_like(conv.shift, 64)),
    }
    for message, node in broken.items():
        with pytest.raises(ModelError, match=message) as error:
            verify(replace(graph, nodes=(node, *graph.nodes[1:])))
        assert conv.name in str(error.value)


def test_a_graph_that_breaks_a_rule_is_refused(rng: random.Random) -> None:
    graph = small_graph(rng)
    verify(graph)
    first, second, *_ = graph.nodes
    tensor = graph.tensors[graph.outputs[0]]  # no node has a rule for it

    def described(**fields: object) -> dict[str, Tensor]:
        return {**graph.tensors, tensor.name: replace(tensor, **fields)}  # type: ignore[arg-type]  # by name

    class Unregistered(Conv):
        pass

    conv = next(n for n in graph.nodes if isinstance(n, Conv))
    other = Unregistered(**{f.name: getattr(conv, f.name) for f in fields(conv)})
    broken = {
        "inputs must be unique": replace(graph, inputs=graph.inputs * 2),
        "outputs must be unique": replace(graph, outputs=graph.outputs * 2),
        "names of nodes must be unique": replace(
            graph, nodes=(first, replace(second, name=first.name), *graph.nodes[2:])
        ),
        "made once": replace(graph, nodes=(first, replace(first, name="twin"), *graph.nodes[1:])),
        "its result must be described": replace(
            graph, tensors={k: t for k, t in graph.tensors.items() if k != first.output}
        ),
        "outputs must be made": replace(graph, outputs=("nowhere",)),
        "tensors must be inputs or results": replace(graph, tensors={**graph.tensors, "more": tensor}),
        "under its name": replace(graph, tensors=described(name="other")),
        "its kind must be one of": replace(graph, nodes=tuple(other if n is conv else n for n in graph.nodes)),
        "zero point must be an int8": replace(graph, tensors=described(zero_point=128)),
        "scale must be positive": replace(graph, tensors=described(scale=0.0)),
    }
    for message, made in broken.items():
        with pytest.raises(ModelError, match=message):
            verify(made)


def check_export(graph: IntGraph, seed: int) -> None:
    data, inputs = to_onnx(graph), random_inputs(graph, seed)
    onnx.checker.check_model(onnx.ModelProto.FromString(data), full_check=True)
    made = run_onnxruntime(data, inputs, list(graph.outputs))
    for name, array in run_graph(graph, inputs, match=RoundingMode.ORT).items():
        np.testing.assert_array_equal(made[name], array, err_msg=name)


def test_the_onnx_file_runs_to_the_same_bytes(rng: random.Random) -> None:
    check_export(small_graph(rng), 2)


@pytest.mark.parametrize("number", range(8))
def test_random_graphs_export(number: int, seed: int) -> None:
    check_export(fold_model(from_proto(random_model(seed + number), name="random")).graph, seed)


def test_each_size_scale_and_zero_point_of_a_tensor_is_checked(rng: random.Random) -> None:
    graph = small_graph(rng)
    name = graph.inputs[0]
    tensor = replace(graph.tensors[name], name="unused")
    shape = tensor.shape
    wrong_shapes = [(*shape[:k], size, *shape[k + 1 :]) for k in range(4) for size in (0, -1)] + [(2, *shape[1:])]
    bad: list[dict[str, object]] = [{"shape": wrong} for wrong in wrong_shapes]
    bad += [{"zero_point": -129}, {"zero_point": 128}, {"scale": 0.0}, {"scale": -1.0}]
    good: list[dict[str, object]] = [
        {"zero_point": -128},
        {"zero_point": 127},
        {"scale": 1e-45},
        {"shape": (1, 1, 1, 1)},
    ]
    for values, right in [(f, False) for f in bad] + [(f, True) for f in good]:
        # An input that no node reads: no node has a rule for it.
        more = replace(tensor, **values)  # type: ignore[arg-type]  # by name
        changed = replace(graph, inputs=(*graph.inputs, "unused"), tensors={**graph.tensors, "unused": more})
        if right:
            verify(changed)
        else:
            with pytest.raises(ModelError, match=r"shape must be|zero point must be|scale must be"):
                verify(changed)


def test_a_node_has_as_many_operands_as_its_kind(rng: random.Random) -> None:
    graph = small_graph(rng)
    for k, node in enumerate(graph.nodes):
        for inputs in ((), node.inputs * 3):
            changed = replace(graph, nodes=(*graph.nodes[:k], replace(node, inputs=inputs), *graph.nodes[k + 1 :]))
            if node.OPERANDS is not None:
                with pytest.raises(ModelError, match=f"{node.name}.*must have {node.OPERANDS} operands"):
                    verify(changed)
        if getattr(node, "table", None) is not None:
            for size in (0, 255, 257):
                other = replace(node, table=bytes(size))  # type: ignore[call-arg]  # it has one
                with pytest.raises(ModelError, match=f"{node.name}.*its table must have 256 bytes"):
                    verify(replace(graph, nodes=(*graph.nodes[:k], other, *graph.nodes[k + 1 :])))
