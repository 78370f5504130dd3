"""TFLite files: every operator equals LiteRT's, and files that cannot run end in one line."""

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from math import prod
from pathlib import Path

import flatbuffers
import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.cli import main
from intloom.common.errors import ExitCode, FileFormatError, IntloomError, UnsupportedError
from intloom.compiler.fold.graph_builder import FoldOptions
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.importer.tflite.batch import one_image
from intloom.compiler.importer.tflite.file import parse_tflite, schema
from intloom.compiler.importer.tflite.load import convert
from intloom.compiler.importer.tflite.view import inverse, permuted, reshaped
from intloom.compiler.litert import run_litert
from intloom.compiler.refusals import Refusal
from intloom.flow.compiling import compile_model
from intloom.flow.litert import defines
from intloom.flow.running import execute, open_backend
from intloom.hw.spec.params import preset
from intloom.session import Session
from intloom.sim.checks import LITERT, ONNXRUNTIME, TFLITE_MICRO
from tests.support.tflite_maker import FILES, PLAIN, TfliteMaker, options, tflite_bytes


def run(path: Path, preset_name: str, backend: str, seed: int):
    """A checked run of a file with random bytes."""
    bundle = compile_model(path, preset(preset_name))
    rng = np.random.default_rng(seed)
    feeds = {
        a.name: rng.normal(size=a.shape).astype(np.float32)
        if a.dtype == np.float32
        else rng.integers(0, 256, a.shape).astype(np.uint8).view(a.dtype)
        for a in bundle.inputs
    }
    opened = open_backend(backend, bundle)
    return bundle, execute(bundle, opened, feeds, check=True)


RTL = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MUL", "MAX_POOL_2D", "AVERAGE_POOL_2D", "SOFTMAX")
"""One operator of each instruction runs in RTL, the others on the instruction simulator; every night all do."""


CASES = [
    pytest.param(
        name, unsigned, backend, id=f"{name}-{'uint8' if unsigned else 'int8'}-{backend}",
        marks=[pytest.mark.slow] * (backend == "rtl")
        + [pytest.mark.nightly] * (backend == "rtl" and (unsigned or name not in RTL)),
    )
    for name in FILES for unsigned in (False, True) for backend in ("isa", "rtl")
]  # fmt: skip


@pytest.mark.parametrize(("name", "unsigned", "backend"), CASES)
def test_operator_equals_litert(name, unsigned, backend, tmp_path, seed):
    if unsigned and name.startswith("BATCH_MATMUL"):
        pytest.skip("LiteRT has no kernel for it")
    path = tmp_path / "file.tflite"
    path.write_bytes(tflite_bytes(name, seed, unsigned=unsigned))
    compiled, result = run(path, "base", backend, seed)
    on_host = [a for a in compiled.folded.assignments if a.target is Target.HOST and ":" in a.name]
    assert bool(on_host) == name.endswith("which LiteRT runs")
    assert not [c for c in result.checks if c.mismatches]
    file = compiled.folded.model.tflite.file
    defined = [defines(file, op) for op in file.operators]
    compared = sum(c.bytes for c in result.checks if c.against in (LITERT, ONNXRUNTIME))
    assert compared >= prod(file.tensors[file.outputs[0]].shape)
    if sum(defined) <= defined[-1]:
        # Integers of the accelerator differ from LiteRT's kernel by at most 1.
        assert result.original.matches or (defined[-1] and result.original.outputs[0].largest <= 1)


def checked_outputs(path: Path, m: TfliteMaker) -> dict[str, np.ndarray]:
    """The outputs of a checked run with random bytes, by their names."""
    session = Session(path, backend="isa", check=True)
    feeds = {i.name: m.rng.integers(-128, 128, i.shape).astype(np.int8) for i in session.get_inputs()}
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))


BATCH = 3
SIZES = {"RESHAPE": 1, "SLICE": 2, "TRANSPOSE_CONV": 0}
ALONE = ("CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED of an image", "ADD of positions to tokens", "PRELU", "SPLIT",
         "CONCATENATION", "STRIDED_SLICE", "SLICE", "PAD", "REDUCE_MAX", "ARG_MAX, which LiteRT runs")  # fmt: skip


def of_batch(name: str, seed: int = 0) -> bytes:
    """A file with several images in each tensor that is computed, and in the sizes that RESHAPE and others read."""
    m = TfliteMaker(seed)
    y = FILES[name](m)
    computed = {*m.inputs, *(i for op in m.operators for i in op.outputs)}
    sizes = {op.inputs[SIZES[op.code]] for op in m.operators if op.code in SIZES}
    for i, t in enumerate(m.tensors):
        if i in computed:
            m.tensors[i] = replace(t, shape=(BATCH * t.shape[0], *t.shape[1:]))
        elif i in sizes and t.data[0] > 0:
            m.tensors[i] = replace(t, data=np.array([BATCH * t.data[0], *t.data[1:]], np.int32))
    return m.data(y)


@pytest.mark.parametrize("name", ALONE)
def test_each_image_of_a_batch_runs_alone(name, tmp_path, seed):
    """The results are those of the file in LiteRT, for all images at once."""
    path, rng = tmp_path / "file.tflite", np.random.default_rng(seed)
    path.write_bytes(of_batch(name, seed))
    session = Session(path, backend="isa", check=True)
    assert {i.shape[0] for i in session.get_inputs()} == {1}
    feeds = {i.name: rng.integers(-128, 128, (BATCH, *i.shape[1:])).astype(np.int8) for i in session.get_inputs()}
    for value, whole in zip(session.run(None, feeds), run_litert(path.read_bytes(), [*feeds.values()]), strict=True):
        np.testing.assert_array_equal(value, whole)


RANKS = {"EXPAND_DIMS": 5, "REDUCE_MAX": 4, "MEAN": 4, "ARG_MAX": 4, "SPLIT": 4, "CONCATENATION": 4}


@pytest.mark.parametrize(("code", "axis"), [(code, axis) for code, n in RANKS.items() for axis in range(-n, n)])
def test_only_operators_along_the_first_axis_mix_images(code, axis):
    shape, rank, m = (4, 8, 6, 2), RANKS[code], TfliteMaker(0)
    front = axis % rank == 0
    x, at = m.input(shape), m.integers(axis)
    outputs = []
    if code == "CONCATENATION":
        outputs.append(m.concatenation([x, x], axis))
    elif code == "SPLIT":
        part = tuple(n // 2 if i == axis % rank else n for i, n in enumerate(shape))
        outputs += [m.tensor(part, PLAIN), m.tensor(part, PLAIN)]
        m.add(code, [at, x], outputs, options("Split", numSplits=2))
    elif code == "EXPAND_DIMS":
        outputs.append(m.moved(code, [x, at], np.expand_dims(np.empty(shape), axis).shape, options("ExpandDims")))
    else:
        reduced = np.delete(shape, axis).tolist()
        made = options("ArgMax", outputType=2) if code == "ARG_MAX" else options("Reducer")
        result = m.tensor(reduced, None, dtype="INT32") if code == "ARG_MAX" else m.tensor(reduced, PLAIN)
        outputs.append(m.add(code, [x, at], [result], made))
    file = parse_tflite(m.data(*outputs), "file")
    made = one_image(file)
    first = {made.tensors[i].shape[0] for i in (*made.inputs, *made.outputs)}
    assert (made is file) == front
    assert first == {1} or front


def test_outputs_that_are_constant_or_listed_twice(tmp_path, seed):
    """As converters write a network that returns a tensor twice, and anchors."""
    m = TfliteMaker(seed)
    x = m.conv(m.input((1, 8, 8, 12)), 20)
    anchors = m.tensor((4,), data=np.array([1, 2, 3, 4], np.int8))
    made = checked_outputs(m.save(tmp_path / "file.tflite", x, anchors, x), m)
    assert set(made) == {f"t{x}", f"t{anchors}"}
    assert made[f"t{anchors}"].tolist() == [1, 2, 3, 4]


def test_a_result_that_becomes_stored_bytes_has_the_order_of_the_file(tmp_path, seed):
    """As converters requantize a concatenation of results with other scales."""
    m = TfliteMaker(seed)
    x = m.conv(m.input((1, 8, 8, 12)), 20)
    real = m.add("DEQUANTIZE", [x], [m.tensor((1, 8, 8, 20), None, dtype="FLOAT32")], options("Dequantize"))
    stored = m.add("QUANTIZE", [real], [m.tensor((1, 8, 8, 20), (0.2, 1))], options("Quantize"))
    assert checked_outputs(m.save(tmp_path / "file.tflite", stored), m)[f"t{stored}"].shape == (1, 8, 8, 20)


@pytest.mark.slow
def test_network_in_rtl_equals_litert(tmp_path, seed):
    path = tmp_path / "file.tflite"
    path.write_bytes(tflite_bytes("network", seed))
    _, result = run(path, "nano", "rtl", seed)
    assert not [c for c in result.checks if c.mismatches]
    assert {c.against for c in result.checks} == {"golden", LITERT, ONNXRUNTIME}


def test_kernels_of_tflite_micro_differ_from_the_default_ones(tmp_path, capsys):
    """The comparison stays with the default kernels; only the distance of the file is that of the others."""
    path, loom = tmp_path / "file.tflite", tmp_path / "file.loom"
    path.write_bytes(tflite_bytes("CONV_2D"))
    assert main(["compile", str(path), "--preset", "base", "-o", str(loom)]) == 0
    distances = {}
    for kernels in ("litert", "tflite-micro"):
        capsys.readouterr()
        words = ["run", str(loom), "--backend", "isa", "--check", "--reference", kernels, "--json"]
        assert main(words) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["mismatches"] == 0
        distances[record["original"]["runtime"]] = record["original"]["outputs"][0]["differing"]
    assert distances[LITERT] == 0 and set(distances) == {LITERT, TFLITE_MICRO}
    assert main(["run", str(loom), "--backend", "isa", "--reference", "tflite-micro"]) == ExitCode.USAGE


def test_reason_of_an_operator_on_the_host():
    """What the importer found is what `inspect` shows, with the row of the list of refusals."""
    folded = fold_model(convert(parse_tflite(tflite_bytes("RESIZE_BILINEAR of thirds, which LiteRT runs"), "file")))
    (found,) = (a for a in folded.assignments if a.op == "RESIZE_BILINEAR")
    assert (found.target, found.row) == (Target.HOST, Refusal.RESIZE.number)
    assert found.reason == "it interpolates from 8x8 to 24x24 pixels: LiteRT runs it"
    assert found.remedy == "enlarge by 2 or 4, or use the nearest pixel"


def test_reason_of_a_batch():
    m = TfliteMaker(0)
    x = m.unary("RELU6", m.unary("TANH", m.input((2, 8, 8, 12)), PLAIN), PLAIN)
    y = m.moved("REDUCE_MAX", [x, m.integers(0)], (1, 8, 8, 12), options("Reducer", keepDims=True))
    folded = fold_model(convert(parse_tflite(m.data(y), "file")))
    first = next(a for a in folded.assignments if a.target is Target.HOST)
    assert (first.op, first.row, first.remedy) == ("Transpose", 4, "export the model with batch size 1")


def test_a_float_spectrogram_leaves_nothing_to_the_host():
    folded = fold_model(convert(parse_tflite(tflite_bytes("SPLIT of a float spectrogram"), "file")))
    assert len(folded.regions) == 1
    assert not [a for a in folded.assignments if a.target is Target.HOST]


def test_what_only_onnxruntime_does_is_no_warning():
    folded = fold_model(convert(parse_tflite(tflite_bytes("RESIZE_BILINEAR, centers"), "file")))
    assert folded.warnings == ()
    (moved,) = (a for a in folded.assignments if a.target is Target.HOST)
    assert (moved.op, moved.row, moved.remedy) == ("Transpose", Refusal.ORDER.number, "no change is needed")


def test_litert_writes_nothing_to_stderr(tmp_path):
    path = tmp_path / "file.tflite"
    path.write_bytes(tflite_bytes("RELU"))
    code = """import numpy as np, pathlib, sys
from intloom.compiler.litert import run_litert
run_litert(pathlib.Path(sys.argv[1]).read_bytes(), [np.zeros((1, 8, 8, 12), np.int8)])
print("end", file=sys.stderr)
"""
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert found.stderr == "end\n"


def test_images_move_only_at_the_input():
    """Channels last is a matter of addresses: between the first and the last operator nothing is transposed."""
    model = convert(parse_tflite(tflite_bytes("network"), "network"))
    moved = [n for n in model.nodes if n.op == "Transpose"]
    assert [n.inputs[0] for n in moved] == list(model.inputs)
    folded = fold_model(model, FoldOptions(softmax=True))
    assert [a.op for a in folded.assignments if str(a.target) == "host"] == ["Transpose"]


def test_joined_rows_that_only_the_host_reads_are_not_transposed():
    """A detector's head: the accelerator leaves the images of its levels, and multiplies nothing to join them."""
    m = TfliteMaker(1)
    image = m.input((1, 40, 40, 12))
    levels = [m.conv(image, 16), m.conv(image, 16, stride=2)]
    rows = [
        m.moved("RESHAPE", [x, m.integers((1, n, 16))], (1, n, 16)) for x, n in zip(levels, (1600, 400), strict=True)
    ]
    best = m.tensor((1, 2000), None, dtype="INT32")
    m.add("ARG_MAX", [m.concatenation(rows, 1), m.integers(2)], [best], options("ArgMax", outputType=2))
    folded = fold_model(convert(parse_tflite(m.data(best), "head")))
    assert [type(n).__name__ for n in folded.graph.nodes] == ["Conv", "Conv"]


def test_split_groups_are_one_convolution():
    model = convert(parse_tflite(tflite_bytes("SPLIT to groups of a convolution"), "grouped"))
    assert [n.integer("group", 1) for n in model.nodes if n.op == "Conv"] == [16]


@pytest.mark.parametrize("change", ["part", "result", "order", "one part", "activation", "kernel"])
def test_what_is_no_split_group_stays_apart(change, tmp_path, seed):
    """Parts or results that others read too, parts in another order, and convolutions that differ."""
    m = TfliteMaker(seed)
    x, parts = m.input((1, 8, 8, 16)), [m.tensor((1, 8, 8, 8)) for _ in range(2)]
    m.add("SPLIT", [m.integers(3), x], parts, options("Split", numSplits=2))
    read = {"order": parts[::-1], "one part": [parts[0], parts[0]]}.get(change, parts)
    results = [
        m.conv(read[0], 4),
        m.conv(read[1], 4, 1 if change == "kernel" else 3, activation=int(change == "activation")),
    ]
    whole = m.concatenation(results)
    other = {"part": parts[1], "result": results[1]}.get(change)
    path = m.save(tmp_path / "file.tflite", whole, *([] if other is None else [m.conv(other, 4)]))
    checked_outputs(path, m)
    model = convert(parse_tflite(path.read_bytes(), "parts"))
    assert {n.integer("group", 1) for n in model.nodes if n.op == "Conv"} == {1}


@given(st.data())
def test_reshape_of_a_view(data):
    """What `reshaped` returns holds the same values; where it returns nothing, the file's order is needed."""
    before = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=5))
    order = tuple(data.draw(st.permutations(range(len(before)))))
    after, left = [], prod(before)
    while left > 1:
        after.append(data.draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0])))
        left //= after[-1]
    for position in data.draw(st.lists(st.integers(0, len(after)), max_size=2)):
        after.insert(position, 1)
    value = np.arange(prod(before)).reshape(permuted(before, inverse(order)))
    found = reshaped(before, after or [1], order)
    if found is None:
        assert order != tuple(range(len(before)))
        return
    shape, turned = found
    assert np.array_equal(value.reshape(shape).transpose(turned), value.transpose(order).reshape(after or [1]))


REFUSED = {
    "float": (
        lambda m: m.add("RELU", [m.input((1, 8), None, "FLOAT32")], [m.tensor((1, 8), None, dtype="FLOAT32")]),
        "is a float model",
    ),
    "float16 weights": (
        lambda m: m.add("DEQUANTIZE", [m.input((8,), None, "FLOAT16")], [m.tensor((8,), None, dtype="FLOAT32")]),
        "float16 weights",
    ),
    "dynamic range": (
        lambda m: m.add(
            "FULLY_CONNECTED",
            [m.input((1, 8), None, "FLOAT32"), m.weights((4, 8), None), -1],
            [m.tensor((1, 4), None, dtype="FLOAT32")],
            options("FullyConnected"),
        ),
        "dynamic range",
    ),
    "int16x8": (
        lambda m: m.add("LOGISTIC", [m.input((1, 8), (0.1, 0), "INT16")], [m.tensor((1, 8), (0.1, 0), dtype="INT16")]),
        "int16x8",
    ),
}


@pytest.mark.parametrize(
    ("name", "index", "row", "change"),
    [
        ("CONV_2D", 3, Refusal.BIAS, {"scales": (), "zero_points": ()}),
        ("CONV_2D", 3, Refusal.BIAS, {"scales": (1e-42,) * 20}),
        ("CONV_2D", 1, Refusal.WEIGHTS, {"scales": (1e-42,) * 20}),
        ("SLICE", 6, Refusal.TYPE, {"zero_points": (1,)}),
        ("RESIZE_NEAREST_NEIGHBOR", 5, Refusal.TYPE, {"scales": (0.3,)}),
    ],
)
def test_what_kernels_of_litert_compute_otherwise_stays_with_the_host(name, index, row, change):
    """XNNPACK takes no denormal or missing scale, and its movements leave bytes as they are."""
    m = TfliteMaker()
    y = FILES[name](m)
    m.tensors[index] = replace(m.tensors[index], **change)
    assignments = fold_model(convert(parse_tflite(m.data(y), "file"))).assignments
    assert [a.row for a in assignments if a.op == m.operators[-1].code] == [row.number]


def test_another_depth_multiplier_than_that_of_the_weights_stays_with_the_host():
    m = TfliteMaker()
    y = m.depthwise(m.conv(m.input((1, 8, 8, 12)), 20))
    m.operators[-1].options.depthMultiplier = 3
    assignments = fold_model(convert(parse_tflite(m.data(y), "file"))).assignments
    assert [a.row for a in assignments if a.op == "DEPTHWISE_CONV_2D"] == [Refusal.INVALID.number]


@pytest.mark.parametrize("kept", [False, True])
def test_averages_that_leave_out_dimensions(kept, tmp_path, seed):
    """LiteRT keeps what the options say; it goes on from the accelerator's averages, which differ at ties."""
    m = TfliteMaker(seed)
    x = m.input((1, 8, 8, 200))
    y = m.moved("MEAN", [x, m.integers((1, 2))], (1, 200), options("Reducer", keepDims=kept))
    assert checked_outputs(m.save(tmp_path / "file.tflite", y), m)[f"t{y}"].shape == (1, 200)


def _sliced(m: TfliteMaker) -> list[int]:
    operands = [m.input((1, 8)), m.integers((3, 0)), m.integers((1, 8)), m.integers((1, 1))]
    m.moved("STRIDED_SLICE", operands, (1, 8), options("StridedSlice"))
    return operands


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, x: None, "makes values of shape"),
        (lambda m, x: m.inputs.append(x[1]), "inputs that are no constants"),
        (lambda m, x: m.operators.append(replace(m.operators.pop(), inputs=tuple(x[:2]))), "no operand 2"),
    ],
)
def test_slices_that_contradict_the_file(change, message):
    m = TfliteMaker()
    change(m, _sliced(m))
    with pytest.raises(FileFormatError, match=message):
        convert(parse_tflite(m.data(m.operators[0].outputs[0]), "file"))


@pytest.mark.parametrize("code", ["MEAN", "SOFTMAX", "AVERAGE_POOL_2D"])
def test_bytes_without_a_scale_stay_with_the_host(code):
    m = TfliteMaker()
    x = m.conv(m.input((1, 8, 8, 12)), 20)
    kinds = {"MEAN": "Reducer", "SOFTMAX": "Softmax", "AVERAGE_POOL_2D": "Pool2D"}
    operands = [m.input((1, 8, 8, 4), None), *([m.integers((1, 2))] if code == "MEAN" else [])]
    y = m.add(code, operands, [m.tensor((1, 1, 1, 4), None)], options(kinds[code]))
    folded = fold_model(convert(parse_tflite(m.data(x, y), "file")))
    assert {a.row for a in folded.assignments if a.op == code} == {Refusal.TYPE.number}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_the_converter_setting(name):
    make, message = REFUSED[name]
    maker = TfliteMaker()
    data = maker.data(make(maker))
    with pytest.raises(UnsupportedError, match=message.replace("(", r"\(").replace(")", r"\)")) as refusal:
        convert(parse_tflite(data, "file"))
    assert "\n" not in str(refusal.value)


def packed(model):
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def refused_row(model, message):
    with pytest.raises(UnsupportedError, match=message) as refusal:
        parse_tflite(packed(model), "file")
    return refusal.value.row


def test_several_subgraphs_have_a_row():
    maker = TfliteMaker()
    data = maker.data(REFUSED["dynamic range"][0](maker))
    model = schema().ModelT.InitFromObj(schema().Model.GetRootAs(data, 0))
    model.subgraphs *= 2
    assert refused_row(model, "must have one subgraph, not 2") == 6


def sparse(values, block: int):
    """Levels and values of a matrix: rows, columns that have values, and columns within blocks of this size."""
    kept = np.argwhere(values.reshape(len(values), -1, block).any(-1)).astype(np.int32)
    starts = np.searchsorted(kept[:, 0], range(len(values) + 1)).astype(np.int32)
    made, rows, columns, within = schema().SparsityParametersT(), *(schema().DimensionMetadataT() for _ in range(3))
    columns.format, rows.denseSize, within.denseSize = 1, len(values), block
    columns.arraySegmentsType = columns.arrayIndicesType = schema().SparseIndexVector.Int32Vector
    columns.arraySegments, columns.arrayIndices = schema().Int32VectorT(starts), schema().Int32VectorT(kept[:, 1])
    made.dimMetadata, made.traversalOrder, made.blockMap = [rows, columns, within], [0, 1, 2], [1]
    return made, values.reshape(len(values), -1, block)[*kept.T].ravel()


@pytest.mark.parametrize("densify", [False, True])
@pytest.mark.parametrize("block", [1, 4])
def test_sparse_constants_are_read(block, densify, seed):
    m = TfliteMaker(seed)
    x, weights = m.input((1, 40)), m.weights((9, 40), None)
    values = m.tensors[weights].data * m.rng.integers(0, 2, (9, 10)).repeat(4, 1).astype(np.int8)
    used = m.moved("DENSIFY", [weights], (9, 40), options("Densify")) if densify else weights
    y = m.add("FULLY_CONNECTED", [x, used], [m.tensor((1, 9), (0.2, 7))], options("FullyConnected"), 4)
    model = schema().ModelT.InitFromObj(schema().Model.GetRootAs(m.data(y), 0))
    stored = next(t for t in model.subgraphs[0].tensors if t.name.decode() == f"t{weights}")
    stored.sparsity, model.buffers[stored.buffer].data = sparse(values, block)
    model.buffers[stored.buffer].data = model.buffers[stored.buffer].data.view(np.uint8)
    read = convert(parse_tflite(packed(model), "file"))
    assert {"Gemm", "Reshape"} == {n.op for n in read.nodes} - {"DequantizeLinear", "QuantizeLinear"}
    assert any(np.array_equal(c.array, values) for c in read.constants.values())
    stored.sparsity.dimMetadata[1].arraySegments.values[-1] += 9
    with pytest.raises(FileFormatError, match="not a valid TFLite file"):
        parse_tflite(packed(model), "file")


@pytest.mark.parametrize("part", ["operators", "inputs", "outputs"])
def test_a_graph_that_lacks_a_part_is_no_model(part):
    model = schema().ModelT.InitFromObj(schema().Model.GetRootAs(tflite_bytes("float signal", 1), 0))
    setattr(model.subgraphs[0], part, [])
    with pytest.raises(FileFormatError, match="must have operators, inputs and outputs"):
        parse_tflite(packed(model), "file")


def damaged(rng: random.Random) -> bytes:
    """A file that is cut, has wrong bytes or offsets, or parts of which are copied or exchanged."""
    data = bytearray(tflite_bytes(rng.choice(list(FILES)), rng.randrange(50)))
    size = len(data)

    def place() -> int:
        # Most bytes are weights: aim at the tables, which begin and end the file.
        return rng.choice((rng.randrange(8, min(size - 4, 600)), rng.randrange(max(8, size - 3000), size - 4))) & ~3

    match rng.randrange(5):
        case 0:
            del data[rng.randrange(8, size) :]
        case 1:
            for _ in range(rng.choice((1, 2, 32))):
                data[place() + rng.randrange(4)] = rng.randrange(256)
        case 2:
            at, start, length = place(), place(), rng.randrange(4, 64)
            data[at : at + length] = data[start : start + length]
        case _:
            for at in [place() for _ in range(rng.choice((1, 2, 4)))]:
                # Small and huge counts, offsets outside, back to here, and to any place: cycles.
                words = (0, 1, 255, 1 << 16, 1 << 28, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, size, size - at, at)
                data[at : at + 4] = rng.choice((*words, (1 << 32) - at, rng.randrange(size))).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("count", [240, pytest.param(2000, marks=pytest.mark.evidence)])
def test_damaged_files_end_in_the_projects_errors(count, seed):
    """They are refused in a line or still convert, in seconds and without much memory; nothing else happens."""
    rng, before = random.Random(seed), psutil.Process().memory_info().rss
    messages, rows = [], set()
    for _ in range(count):
        data, start = damaged(rng), time.process_time()
        try:
            fold_model(convert(parse_tflite(data, "file")), FoldOptions(softmax=True))
        except IntloomError as error:
            messages.append(str(error))
            rows.add(error.row if isinstance(error, UnsupportedError) else 1)
        assert time.process_time() - start < 20
    assert len(messages) > count // 4 and not any("\n" in m for m in messages)
    assert all(rows)
    assert psutil.Process().memory_info().rss - before < 1 << 30


@pytest.mark.parametrize("damage", ["code", "shape"])
def test_operators_that_do_not_fit_their_operands(damage, tmp_path, seed):
    """Before their conversion: the search for groups, and the sizes of constants."""
    m = TfliteMaker(seed)
    x = m.binary("ADD", m.input((1, 8, 8, 12)), m.tensor((9, 12), data=np.zeros((9, 12), np.int8)))
    if damage == "code":
        m.tensors[1] = replace(m.tensors[1], shape=(8, 12), data=np.zeros((8, 12), np.int8))
        m.operators[0] = replace(m.operators[0], code="CONCATENATION")
    with pytest.raises(FileFormatError, match="operator.* does not fit its operands"):
        load_model(m.save(tmp_path / "file.tflite", x))


def test_a_transposed_convolution_states_the_size_that_it_makes():
    """LiteRT's kernel and that of XNNPACK differ otherwise."""
    m = TfliteMaker()
    made = options("TransposeConv", padding=1, strideH=1, strideW=2)
    inputs = [m.integers((1, 1, 64, 4)), m.weights((4, 1, 5, 64)), m.input((1, 1, 32, 64))]
    y = m.add("TRANSPOSE_CONV", inputs, [m.tensor((1, 1, 64, 4), (0.1, 2))], made)
    with pytest.raises(FileFormatError, match=r"needs \[1, 30\] pixels, not \(1, 32\)"):
        convert(parse_tflite(m.data(y), "file"))


@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"])
@pytest.mark.parametrize("factor", [255.9, 256.1])
def test_a_factor_beyond_litert_is_refused(name, factor):
    """As of a result that was 0 in all samples: LiteRT stops where XNNPACK has no kernel."""
    m = TfliteMaker()
    y = FILES[name](m)
    op = m.operators[0]
    x, w = (m.tensors[i] for i in (op.inputs[2 if name == "TRANSPOSE_CONV" else 0], op.inputs[1]))
    m.tensors[y] = replace(m.tensors[y], scales=(x.scales[0] * max(w.scales) / factor,))
    file, feeds = parse_tflite(m.data(y), "file"), [np.zeros(m.tensors[i].shape, np.int8) for i in m.inputs]
    if factor < 256:
        run_litert(m.data(y), feeds)
        convert(file)
        return
    with pytest.raises(UnsupportedError, match="LiteRT cannot run"):
        run_litert(m.data(y), feeds)
    with pytest.raises(UnsupportedError, match="must multiply its sums by less than 256, not 256") as error:
        convert(file)
    assert error.value.row == Refusal.RANGE.number


def test_a_tensor_of_absurd_size_is_refused(tmp_path):
    m = TfliteMaker()
    with pytest.raises(FileFormatError, match="must have at most 268,435,456 elements"):
        load_model(m.save(tmp_path / "file.tflite", m.input((1, 8, 8, (1 << 31) - 1))))


def test_other_bytes_are_not_tflite(tmp_path):
    with pytest.raises(FileFormatError, match="must be a TFLite file"):
        parse_tflite(b"ONNX", "file")
    path = tmp_path / "a.onnx"
    path.write_bytes(b"\0\0\0\0TFL3")
    with pytest.raises(FileFormatError, match="not a valid TFLite file"):
        load_model(path)


def test_damage_is_that_of_a_tflite_file(tmp_path):
    """Also where the first bytes do not say so, and where shape inference of the converted model finds it."""
    path, data = tmp_path / "file.tflite", tflite_bytes("RELU", 1)
    path.write_bytes(data[:4] + b"TFL7" + data[8:])
    with pytest.raises(FileFormatError, match="must be a TFLite file, but it does not begin"):
        load_model(path)
    m = TfliteMaker()
    y = m.unary("RELU", m.input((1, 8)), PLAIN)
    m.tensors[y] = replace(m.tensors[y], shape=(1, 9))
    with pytest.raises(IntloomError, match="not a valid TFLite file"):
        load_model(m.save(path, y))


def test_window_that_covers_its_input_has_any_stride(tmp_path, seed):
    """Keras writes the stride of a global pool as its size, which may be above the instruction's limit."""
    m = TfliteMaker(seed)
    x = m.input((1, 25, 5, 16))
    made = options("Pool2D", padding=1, strideH=25, strideW=5, filterHeight=25, filterWidth=5)
    path = m.save(tmp_path / "file.tflite", m.moved("AVERAGE_POOL_2D", [x], (1, 1, 1, 16), made))
    _, result = run(path, "base", "isa", seed)
    assert not [c for c in result.checks if c.mismatches]


def test_an_input_that_is_reshaped_and_transposed_is_moved_by_the_host(seed):
    """As the spectrum of a keyword, which arrives flat."""
    m = TfliteMaker(seed)
    image = m.moved("RESHAPE", [m.input((1, 768)), m.integers((1, 8, 8, 12))], (1, 8, 8, 12))
    folded = fold_model(convert(parse_tflite(m.data(m.conv(image, 20)), "file")))
    assert [a.op for a in folded.assignments if a.target is Target.HOST] == ["Reshape", "Transpose"]
    assert [type(n).__name__ for n in folded.graph.nodes] == ["Conv"]


def test_sizes_that_litert_cannot_compute_end_in_a_line(seed):
    m = TfliteMaker(seed)
    x = m.conv(m.input((1, 8, 8, 16)), 16)
    sizes = m.add("SHAPE", [x], [m.tensor((4,), None, dtype="INT32")], options("Shape", outType=2))
    shape = m.tensor((2,), None, dtype="INT32")
    m.add("PACK", [sizes, m.integers(-1)], [shape], options("Pack", valuesCount=2))
    flat = m.moved("RESHAPE", [x, shape], (1, 1024))
    with pytest.raises(FileFormatError, match=r"the sizes that .*PACK.* computes are wrong: LiteRT cannot run"):
        convert(parse_tflite(m.data(flat), "file"))


@pytest.mark.parametrize("code", ["PAD", "CONCATENATION"])
def test_float_inputs_that_are_moved_before_they_are_quantized(code, tmp_path, seed):
    """The host had to know values that no tensor of the file holds."""
    m = TfliteMaker(seed)
    x = m.input((1, 8, 8, 12), None, "FLOAT32")
    shape = (1, 10, 10, 12) if code == "PAD" else (1, 8, 8, 24)
    operands = [x, m.integers([[0, 0], [1, 1], [1, 1], [0, 0]])] if code == "PAD" else [x, x]
    made = None if code == "PAD" else options("Concatenation", axis=3)
    wide = m.add(code, operands, [m.tensor(shape, None, dtype="FLOAT32")], made)
    y = m.conv(m.add("QUANTIZE", [wide], [m.tensor(shape)], options("Quantize")), 16)
    bundle, result = run(m.save(tmp_path / "file.tflite", y), "base", "isa", seed)
    assert not [c for c in result.checks if c.mismatches]
    assert [a.row for a in bundle.folded.assignments if a.op == code] == [Refusal.TYPE.number]


def test_bytes_without_any_scale_name_the_converter(tmp_path):
    """`quantize` takes no TFLite file."""
    m = TfliteMaker()
    y = m.add("ABS", [m.input((1, 8), None)], [m.tensor((1, 8), None)])
    with pytest.raises(UnsupportedError, match="is not quantized; convert it to full int8"):
        compile_model(m.save(tmp_path / "file.tflite", y), preset("base"))
