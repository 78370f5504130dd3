"""A compiled program: instructions, constants, tensors, its file, its cost and its checks."""
