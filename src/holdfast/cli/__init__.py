"""The command line: commands, how they end, the demo, and compiling ahead."""
