"""Integer arithmetic that reproduces onnxruntime's results: tables, affine fits, corrections, weights."""
