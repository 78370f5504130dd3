"""RTL simulation: tools, builds, benches."""
