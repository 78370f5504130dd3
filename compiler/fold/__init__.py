"""Folding: from a quantized model to the integer graph."""
