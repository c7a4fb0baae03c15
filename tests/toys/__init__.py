"""Mechanisms that exist in the tests only: they show that a new one is one file and one row."""
