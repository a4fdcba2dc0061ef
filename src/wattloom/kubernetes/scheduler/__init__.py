"""The scheduler beside kube-scheduler: from the queue of pods to bindings and events."""
