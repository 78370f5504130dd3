"""The accelerator in Amaranth, one component a file, and the Verilog made from it."""
