"""Compiler: from a quantized ONNX model to an accelerator program."""
