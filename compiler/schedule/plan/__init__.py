"""Plan: the groups of stages, what stays in the scratchpad, and how each stage is cut into tiles."""
