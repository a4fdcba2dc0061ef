"""Whose joules they are: the account that shares out what a meter counts, over calls, idleness and everybody else."""
