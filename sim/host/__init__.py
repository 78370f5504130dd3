"""The host driver: register and memory access as protocols, and one driver that runs a program through them."""
