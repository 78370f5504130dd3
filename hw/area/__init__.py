"""Area of an accelerator: measured components, and what follows for other parameters."""
