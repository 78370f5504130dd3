"""Bus interfaces as signatures: AXI4 and AXI4-Lite, and the stream buffer that cuts their paths."""
