"""Mechanisms: frozen values with exact parameters that turn public facts into a law."""
