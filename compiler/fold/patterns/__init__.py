"""Recognition of quantization patterns: parameters, quantization units, windows, classes of operators."""
