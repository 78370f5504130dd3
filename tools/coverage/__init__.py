"""Coverage of the RTL: lines, branches and toggles by Verilator, and cover points from the specification."""
