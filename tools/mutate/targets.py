"""The components that are mutated, and their benches."""

from functools import cache
from typing import Any

from tools.components import components, name_of

NOT_MUTATED = {
    "fpga.harness:Harness": "it measures the FPGA and is no part of the accelerator",
    "soc.soc:Soc": "it only connects components",
}
"""Components without mutations, and why."""
_DEVICES, _CONNECTIONS = ("tests/hw/soc/test_devices.py",), ("tests/hw/npu/test_connections.py",)
_OTHER_BENCHES = {
    **dict.fromkeys(("soc.bus_errors", "soc.register_bridge", "soc.timer", "soc.uart"), _DEVICES),
    **dict.fromkeys(("engine", "npu"), _CONNECTIONS),
    "mac.unit": ("tests/hw/mac/test_unit.py", *_CONNECTIONS),
}
"""Of modules whose bench is not, or not only, the file of their name."""


def bench_of(component: str) -> tuple[str, ...]:
    """The files with a component's own tests: `tests/hw/dma/test_load.py` for `dma.load:LoadUnit`."""
    module = component.partition(":")[0]
    *folders, name = module.split(".")
    return _OTHER_BENCHES.get(module) or ("/".join(["tests/hw", *folders, f"test_{name}.py"]),)


@cache
def mutated() -> dict[str, type[Any]]:
    """The classes by name; each elaboration of one is visited by itself."""
    return {name_of(c): c for c in components() if name_of(c) not in NOT_MUTATED}


def targets() -> dict[str, tuple[str, ...]]:
    """Component and its bench."""
    return {name: bench_of(name) for name in mutated()}
