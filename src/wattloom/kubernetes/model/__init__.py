"""Objects of Kubernetes as far as they are read here, and what they are to the engine: tasks, nodes, machines."""
