"""The command line: one module for each command. Knows everything below it; nothing knows it."""
