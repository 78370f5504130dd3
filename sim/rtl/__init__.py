"""RTL simulation: tools, builds, the fast and the detailed bench."""
