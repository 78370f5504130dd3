"""The vector unit: copies, sums, products, pooling and table lookups beside the MAC array."""
