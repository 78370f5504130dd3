"""Compares a folded model, run by the golden model, with onnxruntime: every integer tensor, byte for byte."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.fold.graph_builder import FoldOptions
from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.reference import open_session
from intloom.flow.checking import reference_model, reference_names, tensor_values
from intloom.flow.host import HostSide, as_signed, as_unsigned, run_session, with_outputs
from intloom.flow.regions import all_inputs, run_regions
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph

Array = NDArray[Any]


@dataclass(frozen=True)
class Parity:
    """What a comparison saw."""

    folded: FoldedModel
    tensors: int
    elements: int
    different: dict[str, int]
    """Differing bytes of each tensor that differs."""
    largest: int
    """Largest difference."""


def run_onnxruntime(
    model: bytes, feeds: dict[str, Array], names: list[str], *, optimized: bool = True
) -> dict[str, Array]:
    """Some values of a model, by onnxruntime with its default optimizations or with none."""
    # With the threads of the host parts: float sums depend on their number.
    session = open_session(model, optimized=optimized)
    wanted = {i.name for i in session.get_inputs()}
    return dict(zip(names, session.run(names, {k: v for k, v in feeds.items() if k in wanted}), strict=True))


def random_feeds(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Random inputs: floats from 0 to 1, or any bytes."""
    noise = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    stored = {t.name for t in model.graph.initializer}
    for value in (v for v in model.graph.input if v.name not in stored):
        shape = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = (
            noise.random(shape, dtype=np.float32) if kind == np.float32 else noise.integers(0, 255, shape).astype(kind)
        )
    return feeds


def graph_inputs(
    folded: FoldedModel, feeds: dict[str, Array], match: RoundingMode = RoundingMode.ORT
) -> dict[str, NDArray[np.int8]]:
    """The integer graph's inputs for a model's inputs."""
    return all_inputs(folded, HostSide(folded), feeds, match)


def run_folded(
    folded: FoldedModel, feeds: dict[str, Array], match: RoundingMode = RoundingMode.ORT
) -> dict[str, Array]:
    """The model's outputs by the host's parts and the golden model."""
    host = HostSide(folded)
    _, made = run_regions(
        folded, host, feeds, lambda index, values: run_graph(folded.regions[index], values, match=match)
    )
    return host.after(made, feeds)


def folded(model: onnx.ModelProto, match: RoundingMode = RoundingMode.ORT, **features: bool) -> FoldedModel:
    """The model, folded; it stays as it is."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    return fold_model(from_proto(copy, name="model"), FoldOptions(match, **features))


def compare(
    model: onnx.ModelProto, seed: int, match: RoundingMode = RoundingMode.ORT, plain: FoldedModel | None = None
) -> Parity:
    """Fold a model, run it on random inputs and compare every integer tensor that both sides have."""
    return Comparison(model, plain or folded(model, match), match).compare(random_feeds(model, seed))


class Comparison:
    """A folded model and its reference in one session of onnxruntime, for any number of inputs."""

    def __init__(
        self,
        model: onnx.ModelProto,
        plain: FoldedModel,
        match: RoundingMode = RoundingMode.ORT,
        *,
        outputs: bool = False,
    ) -> None:
        proto, self._shifted = reference_model(plain, model)
        graph, self._match = plain.graph, match
        self._names = reference_names(plain, proto, [*graph.inputs, *(n.output for n in graph.nodes)])
        self._outputs = [o.name for o in model.graph.output] if outputs else []
        self._wanted = list(dict.fromkeys([*self._names.values(), *self._outputs]))
        data = with_outputs(proto, self._wanted).SerializeToString()
        self._session = open_session(data, optimized=match is RoundingMode.ORT)
        self.folded, self.host = plain, HostSide(plain)

    def golden(self, feeds: dict[str, Array]) -> dict[str, NDArray[np.int8]]:
        """Every tensor of the graph by the golden model, for inputs of the model."""
        inputs = all_inputs(self.folded, self.host, feeds, self._match)
        return {**inputs, **run_graph(self.folded.graph, inputs, match=self._match, keep=True)}

    def compare(self, feeds: dict[str, Array]) -> Parity:
        """Compare every integer tensor that both sides have and, if chosen, the model's outputs."""
        ours = self.golden(feeds)
        given = {n: as_unsigned(array, n in self._shifted) for n, array in feeds.items()}
        made = run_session(self._session, self._wanted, given)
        different, largest = {}, 0
        for name, stored in self._names.items():
            gap = np.abs(tensor_values(self.folded, name, made[stored]).astype(np.int32) - ours[name])
            if gap.any():
                different[name], largest = int(np.count_nonzero(gap)), max(largest, int(gap.max()))
        last = self.host.after(ours, feeds) if self._outputs else {}
        for name in self._outputs:
            unequal = np.count_nonzero(last[name] != as_signed(made[name], name in self._shifted))
            different |= {f"output {name}": unequal} if unequal else {}
        return Parity(self.folded, len(self._names), sum(ours[n].size for n in self._names), different, largest)


def assert_equal(model: onnx.ModelProto, seed: int, plain: FoldedModel | None = None) -> Parity:
    """Every integer tensor and every output equals onnxruntime's in the model's integer form."""
    found = compare(model, seed, plain=plain)
    assert found.tensors > 0
    assert not found.different, f"{found.different} of {found.elements} bytes differ, by up to {found.largest}"
    feeds = random_feeds(model, seed)
    names = [o.name for o in model.graph.output]
    reference, shifted = reference_model(found.folded, model)
    given = {n: as_unsigned(array, n in shifted) for n, array in feeds.items()}
    expected = run_onnxruntime(reference.SerializeToString(), given, names)
    ours = run_folded(found.folded, feeds)
    for name in names:
        theirs = as_signed(expected[name], name in shifted)
        np.testing.assert_array_equal(ours[name], theirs, err_msg=f"output {name}")
    return found
