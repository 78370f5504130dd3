"""Which of ONNX's node tests the backend runs, and which it does not, with a reason each."""

MODULES = (
    "quantizelinear", "dequantizelinear", "dynamicquantizelinear", "qlinearconv", "qlinearmatmul", "convinteger",
    "matmulinteger", "maxpool", "globalmaxpool", "resize", "upsample", "concat", "add", "mul", "split", "slice",
)  # fmt: skip
"""ONNX's own modules of cases."""

INCLUDED = (
    "test_quantizelinear", "test_dequantizelinear", "test_dynamicquantizelinear", "test_qlinear", "test_convinteger",
    "test_matmulinteger", "test_maxpool_2d", "test_maxpool_with_argmax", "test_globalmaxpool", "test_upsample_nearest",
    "test_resize_(up|down)sample_(scales|sizes)_nearest", "test_concat", "test_add", "test_mul", "test_split_[^t]",
    "test_slice",
)  # fmt: skip
_EMPTY = "an empty tensor: the importer refuses models with inputs of size zero"
EXCLUDED = {
    "test_split_zero_size_splits_opset13": _EMPTY,
    "test_split_zero_size_splits_opset18": _EMPTY,
}
