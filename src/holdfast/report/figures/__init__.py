"""Figures as SVG, one kind per file, drawn from the plain values in facts.py; svg.py has the scales, lines and labels of all of them."""
