"""Partitioning of a model between accelerator and host."""
