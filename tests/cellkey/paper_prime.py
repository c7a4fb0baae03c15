"""A modulus of cell keys for tests."""

BIG_PRIME = 4294967291
"""The largest prime below 2^32: `bigN` of [SC22, (36)], which names no value."""
