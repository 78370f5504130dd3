"""Instruction emission: the constant image, and waits derived from hazards."""
