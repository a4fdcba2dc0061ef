"""The log, read in one place: records, what became of each task, a fresh engine told again, and why it decided so."""
