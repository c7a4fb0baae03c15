"""Where tasks run: the only package that gives a drawing confidential input."""
