"""Benchmarks: what `make bench` runs. One module for each group; bars are shown beside the figures and never fail a run."""
