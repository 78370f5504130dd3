"""Time-parallel RTL runs: segments of a program are simulated at the same time and stitched together."""
