"""Text in pictures: trained networks that find and read it, and pictures of text drawn from a seed."""
