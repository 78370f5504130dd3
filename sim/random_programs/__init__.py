"""Random programs over the whole legal field space, run on RTL and instruction simulator and compared."""
