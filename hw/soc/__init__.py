"""A small system on a chip around the accelerator: RISC-V core, interconnect and UART, for simulation."""
