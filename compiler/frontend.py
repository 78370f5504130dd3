"""Front end: from an imported model to the integer graph, host parts, assignments and warnings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from intloom.common.errors import IntloomError, ModelError, UnsupportedError, UsageError
from intloom.compiler.fold.byte_order import Positions
from intloom.compiler.fold.graph_builder import FoldOptions, GraphBuilder
from intloom.compiler.fold.lower_model import graph_of, leave_for_host, lower_units, orders_of
from intloom.compiler.fold.passes.absorb_pads import absorb_pads
from intloom.compiler.fold.passes.channel_scales import join_equal_scales, without_channel_scales
from intloom.compiler.fold.passes.constants import fold_constants
from intloom.compiler.fold.passes.custom_shapes import add_custom_shapes
from intloom.compiler.fold.passes.integer_chains import fold_integer_chains
from intloom.compiler.fold.passes.merge_tables import merge_tables
from intloom.compiler.fold.passes.parts import compute_parts_apart
from intloom.compiler.fold.passes.products import fold_products
from intloom.compiler.fold.passes.propagate_qdq import propagate_qdq
from intloom.compiler.fold.passes.qoperator import rewrite_qoperators
from intloom.compiler.fold.passes.unsigned_activations import use_unsigned_activations
from intloom.compiler.fold.patterns.qparams import check_parameters, is_dequantize, is_quantize, read_qparams
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, to_bytes
from intloom.compiler.importer.check import check_model
from intloom.compiler.importer.text import model_text
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.graph import without_dead_nodes
from intloom.compiler.ir.serialize import to_text
from intloom.compiler.ir.verify import verify
from intloom.compiler.partition.assignment import CONSEQUENCES, Assignment, assign_nodes
from intloom.compiler.partition.host import boundary_value, final_part, input_source, part_before
from intloom.compiler.partition.regions import return_small_regions, split, tensor_levels, without_unread_inputs
from intloom.compiler.partition.warn import find_warnings
from intloom.compiler.reference_form import reference_form
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.params import HardwareParams

MODEL_PASSES = {
    "constants": fold_constants,
    "equal_scales": join_equal_scales,
    "custom_shapes": add_custom_shapes,
    "unsigned_activations": use_unsigned_activations,
    "qoperator": rewrite_qoperators,
    "integer_chains": fold_integer_chains,
    "products": fold_products,
    "propagate_qdq": propagate_qdq,
}
_OF_TFLITE = {"constants": fold_constants, "propagate_qdq": propagate_qdq}
"""A model from a TFLite file is in QDQ form already, and LiteRT takes int8 activations."""
GRAPH_PASSES = {
    "parts": compute_parts_apart,
    "dead_code": without_dead_nodes,
    "absorb_pads": absorb_pads,
    "merge_tables": merge_tables,
}


@dataclass(frozen=True)
class TensorQuantization:
    """Quantization of a tensor at the boundary of the integer graph.

    `name` is the tensor of the graph and `stored` the quantized value of the model that it holds. `source` is the
    float value on the host's side, or equal to `stored` where the model passes integers across the boundary. `shape`,
    `scale` and `zero_point` are those of the model.
    """

    name: str
    stored: str
    source: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    unsigned: bool
    positions: Positions | None = field(default=None, compare=False)
    """Where the tensor has each value of the model, if it has them in another order: the host changes the order."""


@dataclass(frozen=True, eq=False)
class FoldedModel:
    """Result of folding: integer graph, regions, host parts, assignments and boundary quantization."""

    whole: IntGraph
    """All integer operations. The host computes the inputs in `host_computed` between two regions."""
    regions: tuple[IntGraph, ...]
    """Parts of the graph in execution order, each a program; empty if no node runs on the accelerator."""
    host_parts: tuple[bytes | None, ...]
    """ONNX model that the host runs before each region; None where the host only quantizes the inputs."""
    final_host_part: bytes | None
    """ONNX model that the host runs after the last region on the dequantized outputs; None where it is empty."""
    inputs: Mapping[str, tuple[int, ...]]
    """Inputs of the model with their shapes."""
    assignments: tuple[Assignment, ...]
    warnings: tuple[str, ...]
    input_quant: Mapping[str, TensorQuantization]
    output_quant: Mapping[str, TensorQuantization]
    orders: Mapping[str, tuple[str, Positions]] = field(default_factory=dict)
    """For tensors that hold a quantized value of the model in another order: its name, and the positions of its values.
    """
    source: str = ""
    """SHA-256 hash of the model."""
    shifted: frozenset[str] = frozenset()
    """Values that are int8 in the file and uint8 in the host parts, larger by 128."""
    model: Model | None = None
    """The imported model."""

    @cached_property
    def reference(self) -> Model | None:
        """The form of the model that onnxruntime computes in integers; None where this is the file itself."""
        return None if self.model is None else reference_form(self.model, self.accelerated)

    @property
    def accelerated(self) -> frozenset[str]:
        """Names of the file's nodes that run on the accelerator."""
        return frozenset(a.name for a in self.assignments if a.target in (Target.ARRAY, Target.VECTOR, Target.TABLE))

    def __repr__(self) -> str:
        return f"<FoldedModel {self.whole.name!r}, {len(self.whole.nodes)} integer operations>"

    @property
    def graph(self) -> IntGraph:
        """All integer operations.

        Raises
        ------
        UnsupportedError
            No node of the model can run on the accelerator.
        """
        if not self.regions:
            cause, row = self._cause
            raise UnsupportedError(f"no part of the model can run on the accelerator: {cause}", row)
        return self.whole

    @property
    def _cause(self) -> tuple[str, int]:
        """The first reason for which nodes run on the host, and its row; reasons that follow from it come last."""
        rows = [a for a in self.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)]
        causes = [a for a in rows if not a.reason.startswith(CONSEQUENCES)] or rows
        if not causes:
            return "the model is not quantized", Refusal.FLOAT_MODEL.number
        first = causes[0]
        remedy = f": {first.remedy}" if first.remedy else ""
        more = f" ({len(rows)} nodes run on the host; intloom inspect lists them)" if len(rows) > 1 else ""
        return f"{first.name}: {first.reason}{remedy}{more}", first.row

    @property
    def host_computed(self) -> frozenset[str]:
        """Inputs of the graph that the host computes from results of earlier regions."""
        return frozenset(n for n, q in self.input_quant.items() if q.source not in self.inputs and q.source == q.stored)


_DEFAULT = FoldOptions()
Graph = TypeVar("Graph")


def run_passes(
    graph: Graph,
    passes: Mapping[str, Callable[[Graph], Graph]],
    verify: Callable[[Graph], None],
    watch: Callable[[str, Graph], None] = lambda name, graph: None,
) -> Graph:
    """Run passes, given by their names, in order; `watch` receives the graph after each, and `verify` checks new ones.

    Raises
    ------
    ModelError
        A pass returned an invalid graph; the message names the pass.
    """
    for name, transform in passes.items():
        before, graph = graph, transform(graph)
        try:
            if graph is not before:
                verify(graph)
        except IntloomError as error:
            raise ModelError(f"after pass {name}: {error}") from error
        watch(name, graph)
    return graph


def _prepared(model: Model, watch: Callable[[str, Model], None] = lambda name, model: None) -> Model:
    """The model after its passes; `watch` receives it after each."""
    return run_passes(model, MODEL_PASSES if model.tflite is None else _OF_TFLITE, check_model, watch)


def _lowered(prepared: Model, options: FoldOptions) -> GraphBuilder:
    """The integer graph of a model after its passes, without regions that are too small."""
    builder = lower_units(prepared, options)
    return_small_regions(builder)
    # Units that were returned read values that may have another order.
    leave_for_host(builder)
    return builder


def pass_names() -> tuple[str, ...]:
    """Names of all passes in execution order."""
    return (*MODEL_PASSES, *GRAPH_PASSES)


def fold_model(model: Model, options: FoldOptions = _DEFAULT) -> FoldedModel:
    """Fold a model into an integer graph.

    Raises
    ------
    ModelError, UnsupportedError
        The model is invalid, or no part of it can be folded; messages name the node.
    """
    check_parameters(model)
    prepared = _prepared(model)
    builder = _lowered(prepared, options)
    graph, leaving = graph_of(builder, model)
    # Before any pass, so that an error is not attributed to a pass that did not cause it.
    verify(graph)
    # Passes may remove the last reader of a host-computed input.
    graph = without_unread_inputs(run_passes(graph, GRAPH_PASSES, verify), builder.host_computed)
    regions = split(graph, tensor_levels(builder))
    parts = [part_before(builder, r, leaving, first=r is regions[0]) for r in regions]
    for region in regions:
        verify(region)
    return FoldedModel(
        whole=graph,
        regions=regions,
        host_parts=tuple(_serialized(p) for p in parts),
        final_host_part=_serialized(final_part(builder, leaving)),
        inputs={v: model.shape(v) or () for v in model.inputs},
        assignments=assign_nodes(model, builder),
        warnings=find_warnings(builder, model),
        input_quant={name: _quant(builder, name, name) for name in graph.inputs},
        output_quant={tensor: _quant(builder, stored, tensor) for stored, tensor in leaving.items()},
        orders=orders_of(builder),
        source=model.source,
        shifted=prepared.shifted,
        model=model,
    )


def irregular_scales(model: Model) -> tuple[str, ...]:
    """Names of the constants that are scales of sums and products which no affine constants reproduce."""
    builder = lower_units(_prepared(model), _DEFAULT)
    return tuple(dict.fromkeys(builder.units[name].quantize.inputs[1] for name in builder.irregular))


def fold_options(params: HardwareParams) -> FoldOptions:
    """The options for hardware with these parameters."""
    return FoldOptions(params.match, params.vector_softmax, params.vector_norm, params.weight_sums)


def fold_for(model: Model, params: HardwareParams) -> FoldedModel:
    """Fold a model for hardware with these parameters."""
    return fold_model(model, fold_options(params))


def dump_pass(model: Model, name: str, options: FoldOptions = _DEFAULT) -> str:
    """Text of the model or of the integer graph after a pass.

    Raises
    ------
    UsageError
        `name` is not the name of a pass.
    """
    if name not in pass_names():
        raise UsageError(f"pass must be one of {', '.join(pass_names())}, not {name!r}")
    seen: dict[str, str] = {}
    prepared = _prepared(model, lambda step, m: seen.update({step: model_text(m)}))
    if name not in seen:
        builder = _lowered(prepared, options)
        graph, _ = graph_of(builder, model)
        run_passes(graph, GRAPH_PASSES, verify, lambda step, g: seen.update({step: to_text(g)}))
    return seen[name]


def _serialized(part: Model | None) -> bytes | None:
    return None if part is None else to_bytes(without_channel_scales(part))


def _quant(builder: GraphBuilder, stored: str, tensor: str) -> TensorQuantization:
    """Quantization of the model's quantized value that a boundary tensor holds."""
    model = builder.model
    maker = model.producers.get(stored)
    readers = [n for n in model.users(stored) if is_dequantize(n)]
    source = input_source(builder, stored) if stored in builder.inputs else boundary_value(model, stored)
    # An input has the parameters of its QuantizeLinear; a float output has those of the DequantizeLinear after it.
    leaves_as_float = stored not in builder.inputs and source != stored
    quantizes = maker is not None and is_quantize(maker)
    pattern = model.producers[source] if leaves_as_float else maker if maker is not None and quantizes else readers[0]
    params = read_qparams(model, pattern)
    signed = stored in model.shifted
    order = builder.orders.get(stored)
    return TensorQuantization(
        name=tensor,
        stored=stored,
        source=source,
        shape=builder.views[stored][1],
        scale=float(params.scale),
        zero_point=params.zero_int8 if signed else int(params.zero_point),
        unsigned=params.unsigned and not signed,
        positions=None if order is None or order.tensor != tensor else order.positions,
    )


__all__ = [
    "FoldedModel",
    "Target",
    "TensorQuantization",
    "dump_pass",
    "fold_for",
    "fold_model",
    "irregular_scales",
    "pass_names",
]
