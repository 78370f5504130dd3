"""Components of an accelerator whose area is counted, and the kinds of words and cells in them."""

from collections.abc import Mapping
from typing import Any

Counts = dict[str, float]
"""A number for each word or kind of cell."""
CELLS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "xc7": {
        "LUT": {
            "LUT": 1, "SRL": 1, "RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4,
            "RAM256X1S": 4, "RAM128X1S": 2, "RAM64X1S": 1, "RAM32X1S": 1,
        },
        "FF": {"FD": 1},
        "DSP": {"DSP48E1": 1},
        "RAM": {"RAMB36E1": 1, "RAMB18E1": 0.5},
    },
    "ecp5": {
        "LUT": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
        "FF": {"TRELLIS_FF": 1},
        "DSP": {"MULT18X18D": 1},
        "RAM": {"DP16KD": 1},
    },
}  # fmt: skip
"""What a cell counts for each kind, by FPGA family and the beginning of its name."""
FAMILY_FIELDS: Mapping[str, Mapping[str, Any]] = {"xc7": {"lut_products": 0, "multiplier_bits": 25}}
"""Parameters that suit a family: Yosys makes each part of a product in LUTs a DSP block on the 7 series."""
KINDS = {"xc7": ("LUT", "FF", "DSP", "RAM"), "ecp5": ("LUT", "FF", "DSP", "RAM"), "asic": ("gates", "FF")}
WORDS = (
    "add", "compare", "equal", "logic", "mux", "shift", "register", "lut memory", "bits", "product", "part",
)  # fmt: skip
"""What is counted before mapping: bits, small memories, multipliers, and partial products of products in LUTs."""
_COMPONENTS = {
    "npu.engine.mac.array": "array",
    "npu.engine.mac.accumulators": "accumulators",
    "npu.engine.mac.epilogue": "epilogue",
    "npu.engine.mac": "MAC control",
    "npu.engine.vec.softmax": "softmax",
    "npu.engine.vec.norm": "normalization",
    "npu.engine.vec.columns": "depthwise",
    "npu.engine.vec.constants": "depthwise",
    "npu.engine.vec.epilogue": "depthwise",
    "npu.engine.vec.walk": "depthwise",
    "npu.engine.vec.window": "depthwise",
    "npu.engine.vec.datapath": "vector datapath",
    "npu.engine.vec": "vector control",
    "npu.engine.scratch": "scratchpad",
    "npu.engine.weights": "weight memory",
    "npu.engine.load": "load and store",
    "npu.engine.store": "load and store",
}
"""Components by the beginning of their path; the rest is `control`."""


def component_of(path: str) -> str:
    """The component that an instance belongs to."""
    return next((name for start, name in _COMPONENTS.items() if path.startswith(start)), "control")
