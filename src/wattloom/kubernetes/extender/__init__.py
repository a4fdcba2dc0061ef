"""The extender inside kube-scheduler: which of the offered nodes a pod should go to."""
