"""Chains within bounds, and the chain of [GM20] with independent proposals: to compare with; no release is drawn by them."""
