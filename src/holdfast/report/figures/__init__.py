"""Figures as SVG, one kind per file, drawn from the plain values in card/figure_facts.py; svg.py has their scales, lines and labels."""
