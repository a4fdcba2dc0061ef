"""Wattloom runs functions, tasks and workflows where they cost the least energy, and shows the saving."""
