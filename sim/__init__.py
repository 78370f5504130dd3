"""Golden model, instruction simulator and RTL co-simulation behind one interface."""
