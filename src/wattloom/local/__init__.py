"""This machine as a backend: an executor, its dispatcher and the worker processes that run the calls."""
