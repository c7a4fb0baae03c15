"""Anyone's check of a published folder, from its files alone."""
