"""Where things run: machine profiles, power curves, nodes, and the index that policies look at."""
