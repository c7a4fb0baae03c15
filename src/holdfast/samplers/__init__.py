"""Exact draws from a law on a block: one algorithm per file, behind one small protocol."""
