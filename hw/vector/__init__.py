"""The vector unit: copies, sums, products, pools and tables beside the MAC array."""
