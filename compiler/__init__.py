"""From a quantized ONNX model to a program for the accelerator."""
