"""Where tasks run: the only rooms that give a drawing confidential input."""
