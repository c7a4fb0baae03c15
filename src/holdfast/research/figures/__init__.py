"""Figures of the papers as data, ours beside theirs."""
