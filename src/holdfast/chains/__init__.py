"""Markov chains on the lattice, and couplings that say how far they are from their law."""
