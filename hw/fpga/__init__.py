"""Synthesis, placement and routing of the accelerator for Lattice ECP5, with open tools that pip installs."""
