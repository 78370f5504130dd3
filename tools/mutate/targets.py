"""The components that are mutated, and their benches."""

from functools import cache
from typing import Any

from tools.components import components, name_of

NOT_MUTATED = {
    "fpga.harness:Harness": "it measures the FPGA and is no part of the accelerator",
    "soc.soc:Soc": "it only connects components",
}
"""Components without mutations, and why."""
_SHARED_BENCHES = dict.fromkeys(
    ("soc.bus_errors", "soc.register_bridge", "soc.timer", "soc.uart"), "tests/hw/soc/test_devices.py"
) | dict.fromkeys(("engine", "mac.unit", "npu"), "tests/hw/npu/test_connections.py")
"""Benches of several modules; every other module has its own, of its name."""


def bench_of(component: str) -> str:
    """The file with a component's own tests: `tests/hw/dma/test_load.py` for `dma.load:LoadUnit`."""
    module = component.partition(":")[0]
    *folders, name = module.split(".")
    return _SHARED_BENCHES.get(module) or "/".join(["tests/hw", *folders, f"test_{name}.py"])


@cache
def mutated() -> dict[str, type[Any]]:
    """The classes by name; each elaboration of one is visited by itself."""
    return {name_of(c): c for c in components() if name_of(c) not in NOT_MUTATED}


def targets() -> dict[str, str]:
    """Component and its bench."""
    return {name: bench_of(name) for name in mutated()}
