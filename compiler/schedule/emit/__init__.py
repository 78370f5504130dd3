"""Emission: from a plan to the instructions and the constant image."""
