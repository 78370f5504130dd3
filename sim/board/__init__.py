"""The accelerator on a board: transports to its registers and memory, and the backend that runs programs there."""
