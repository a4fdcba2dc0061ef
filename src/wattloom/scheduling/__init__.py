"""The engine: events in, instructions out. Knows no clock, socket, disk or randomness."""
