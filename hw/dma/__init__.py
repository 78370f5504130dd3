"""Moves between memory and the accelerator's own memories: 3-D strided, in AXI bursts."""
