"""The cluster as it is now: the caches of pods and nodes, and the engine that is told of them."""
