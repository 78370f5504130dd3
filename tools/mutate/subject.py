"""What a mutation score is about: the Verilog of one component on all shapes, and its bench.

A score stays valid while other components change.
"""

import json
from collections import defaultdict
from functools import cache

from intloom.common import evidence
from intloom.common.cache.store import Kind, cached_text, key_of
from intloom.hw.mac.array.product import PRODUCT_MODULE, LutProduct
from intloom.hw.npu import TOP_NAME, Npu
from intloom.hw.soc.soc import SOC_TOP, Soc, generate_soc
from intloom.sim.rtl.verilog import verilog_of
from tests.support.shapes import SHAPES
from tools.components import name_of
from tools.coverage.summary import ROOT, component_of, component_paths
from tools.mutate.targets import bench_of
from tools.netlist import modules

_TESTS = "tests"


def source_of(component: str) -> str:
    """The component's module."""
    return f"hw/{component.partition(':')[0].replace('.', '/')}.py"


def subject_of(component: str) -> str:
    """A hash of the component and its bench; of the bench with the modules of tests that it imports."""
    bench = evidence.code_hash(ROOT, bench_of(component), _TESTS)
    return evidence.content_hash([_components()[component].encode(), bench.encode()])


@cache
def _components() -> dict[str, str]:
    """A hash of each component's Verilog in all shapes, those of the system on a chip among them."""
    verilog = [verilog_of(params) for params in SHAPES.values()]
    key = key_of("subjects", verilog, evidence.code_hash(ROOT, ("hw/soc", "tools/netlist.py")))
    found: dict[str, str] = json.loads(cached_text(Kind.RESULT, key, "subjects.json", _computed, detail="hashes"))
    return found


def _computed() -> str:
    parts: dict[str, set[str]] = defaultdict(set)
    for params in SHAPES.values():
        for top, name, verilog in (
            (Npu(params), TOP_NAME, verilog_of(params)),
            (Soc(params), SOC_TOP, generate_soc(params)),
        ):
            paths = component_paths(top, name) | {PRODUCT_MODULE: name_of(LutProduct)}
            for path, module in modules(verilog).items():
                # Relative paths: the depth at which a component is used does not change it.
                parts[component_of(path, paths)].add(module.exactly)
    return json.dumps({name: evidence.content_hash(d.encode() for d in sorted(found)) for name, found in parts.items()})
