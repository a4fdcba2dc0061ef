"""What drives an engine: events in, the log, instructions out; and an engine's state as events."""
