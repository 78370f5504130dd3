"""The components that are mutated: all of the test plan, but for a few with a reason."""

from __future__ import annotations

from tools.testplan.plan import read_plan

NOT_MUTATED = {
    "engine:Engine": "it only connects components, and has no bench of its own",
    "fpga.harness:Harness": "it measures the FPGA and is no part of the accelerator",
    "mac.unit:MacUnit": "it only connects components, and its bench runs on Verilator",
    "npu:Npu": "it only connects components",
    "soc.soc:Soc": "it only connects components",
}
"""Components without mutations, and why."""


def targets() -> dict[str, str]:
    """Component and its bench."""
    return {e.component: e.bench for e in read_plan() if e.component not in NOT_MUTATED}
