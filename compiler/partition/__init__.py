"""What runs where: the border between accelerator and host, and a verdict for every node."""
