"""Bus interfaces as signatures: AXI4 and AXI4-Lite; and the skid buffer."""
