"""What several operator lowerings share: convolutions, data movement, spatial operations."""
