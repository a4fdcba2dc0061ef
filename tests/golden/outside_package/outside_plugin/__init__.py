"""A plug-in from outside. Frozen: it is not changed when Wattloom is."""
