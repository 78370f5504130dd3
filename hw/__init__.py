"""The accelerator in Amaranth, one component per file, and Verilog generation.

A component creates its signals and submodules in `elaborate`. Only interface members, and signals that proofs inspect,
are attributes created in `__init__`.
"""
