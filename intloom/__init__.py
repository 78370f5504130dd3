"""Intloom: from a quantised ONNX network to a Verilog accelerator, its program and the proof that they agree."""
