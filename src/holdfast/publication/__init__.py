"""From a table to a published folder: plan, release, verify."""
