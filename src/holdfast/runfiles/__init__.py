"""Run files: reading TOML, checking every key, and writing a first file."""
