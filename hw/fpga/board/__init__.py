"""A LiteX system with the accelerator for a named ECP5 board, and its bitstream."""
