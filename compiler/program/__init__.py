"""The program image: instructions, constants and the manifest that says what everything is."""
