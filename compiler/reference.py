"""onnxruntime as the outside reference: quiet, and with whole sums on every processor."""

from __future__ import annotations

import onnxruntime

_ERRORS_ONLY = 3


def session_options(*, optimised: bool = True, threads: int = 0) -> onnxruntime.SessionOptions:
    """Options of a session whose integers are ONNX's; with its default optimisations or none, `threads` 0: its choice.

    On x86 without VNNI onnxruntime multiplies unsigned by signed bytes with an instruction that saturates each sum of
    two products. Asked for whole sums its optimisations avoid that; elsewhere the entry changes nothing.
    """
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
