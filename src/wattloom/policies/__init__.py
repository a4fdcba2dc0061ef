"""Policies: where a task goes. One file each, all through the one protocol in `protocol`."""
