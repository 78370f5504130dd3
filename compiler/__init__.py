"""From a quantised ONNX model to a program for the accelerator."""
