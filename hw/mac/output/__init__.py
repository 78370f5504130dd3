"""Accumulator readout and the write port."""
