"""Instruction issue: decode, loop setup, tile planning and the pixel sequencer."""
