"""The backend for Kubernetes: the API server tells what is, the engine decides, bindings carry it out."""
