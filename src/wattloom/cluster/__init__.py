"""The state of a cluster: nodes and their classes, what fits, rules and reasons, the index policies look at."""
