"""The journal: every accepted task on disk before it runs, and the engine's log of every run, in one SQLite file."""
