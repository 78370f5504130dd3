"""Mutation testing of RTL: it tells whether the tests' stimuli make small faults in the hardware visible.

1. The component's own tests run once, and every cycle of its ports is recorded (`record`).
2. Yosys puts hundreds of faults into one netlist, each switched on by a number (`netlist`).
3. One Verilator program replays the recorded inputs on every fault and compares the outputs (`replay`).
4. Faults that no output shows are either proved harmless by an equivalence check, or holes in the tests.
"""
