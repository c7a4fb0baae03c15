"""Sentences about what only research has: `describe` knows them once the room they are about is loaded."""
