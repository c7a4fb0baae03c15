"""Figures as SVG, one kind per file, drawn from the plain values in facts.py; svg.py has the scales, lines and labels that all of them use."""
