"""Coverage of the RTL: what Verilator counted, and cover points, by component; `make coverage` runs the programs."""
