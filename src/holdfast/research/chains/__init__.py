"""Chains within bounds, and the chain of [GM20] with independent proposals: to compare with; no release is drawn by them.

`diagnose` shows how fast the chains of a release come to their law (diagnose.py), with conventional diagnostics and a page.
"""
