"""The accelerator in Amaranth, one component per file, and Verilog generation.

A component creates its signals and submodules in `elaborate` and in the methods that it calls. `elaborate` assigns
those that several methods share to attributes; no other method does. `__init__` creates the interface members, and of
the signals only those that proofs or benches inspect.
"""
