"""Networks of the zoo as integer graphs, quantized once and kept in the cache."""

import hashlib
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import intloom
from intloom.common.cache.store import Kind, cached_file, key_of
from intloom.compiler import fold
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.files import write_bytes
from intloom.flow.checking import compare_reference, reference_tensors
from intloom.flow.host import HostSide
from intloom.flow.regions import all_inputs
from intloom.hw.spec.arith import RoundingMode
from intloom.images import seeded_input
from intloom.models import load_onnx
from intloom.preprocess import tool_versions
from intloom.quantization import QuantizeOptions, quantize
from intloom.sim.compare import Comparison
from intloom.sim.golden import run_graph
from intloom.sim.regress.case import Network
from intloom.sim.result import Arrays
from intloom.zoo import build


def load_network(name: str, imgsz: int) -> Network:
    """The integer graph of a zoo network with seeded inputs, compared with onnxruntime."""
    path = quantized_network(name, imgsz)
    file = load_onnx(path)
    folded = fold_model(load_model(path))
    host = HostSide(folded)
    feeds = {n: seeded_input(shape, 0) for n, shape in folded.inputs.items()}
    inputs = all_inputs(folded, host, feeds, RoundingMode.ORT)

    def compare(outputs: Arrays) -> Comparison:
        golden = run_graph(folded.graph, inputs, match=RoundingMode.ORT, keep=True)
        tensors = {**inputs, **golden, **outputs}
        return Comparison(tuple(compare_reference(folded, reference_tensors(folded, file, feeds, tensors), tensors)))

    return Network(folded.graph, inputs, compare)


@lru_cache(maxsize=1)
def _makers_hash() -> str:
    """Hash of the code that builds and quantizes networks: what it makes changes with it."""
    digest = hashlib.sha256()
    package, folding = Path(intloom.__file__).parent, Path(fold.__file__).parent
    makers = (*package.glob("zoo/*.py"), *package.glob("quantization/*.py"), package / "images.py")
    # The compiler says which scales are regular.
    for source in sorted([*makers, *folding.glob("arithmetic/*.py"), folding / "lowering/elementwise.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def quantized_network(name: str, imgsz: int, cache: Path | None = None) -> Path:
    """The quantized form of a zoo network, in the cache: as `intloom quantize` makes it without options."""

    def make(folder: Path) -> Path:
        floats, target = folder / f"{name}.onnx", folder / f"{name}.q.onnx"
        write_bytes(floats, build(name, imgsz).SerializeToString(deterministic=True))
        quantize(floats, target, options=chosen, cache=cache)
        return target

    chosen = QuantizeOptions()
    key = key_of("zoo", name, imgsz, _makers_hash(), asdict(chosen), tool_versions())
    return cached_file(Kind.MODEL, key, make, detail=f"zoo {name} {imgsz}", home=cache).path
