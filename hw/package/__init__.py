"""The package for other tools' flows: readable Verilog, and the files that integration needs."""
