"""The suite's functions in Python, one file each: `handler(event)` takes one object and returns one.

Each imports the one library it is about, and little else: a worker imports it when it is first called.
"""
