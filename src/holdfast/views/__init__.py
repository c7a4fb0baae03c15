"""Counts for print: searches for non-negative whole numbers that keep every total."""
