"""What is published on nodes and in the cluster: machine profiles, and watts as a resource."""
