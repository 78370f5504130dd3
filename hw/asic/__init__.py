"""Size and speed of the accelerator in an open standard cell library."""
