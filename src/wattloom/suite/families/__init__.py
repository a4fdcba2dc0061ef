"""Families of the suite's functions: what each is given for a seed, and what is right about its result.

Each module owns one family: `event(seed)` makes the input, `check(event, result)` raises WrongResult. A check knows no
library that the functions use, so that both cannot be wrong in the same way.
"""
