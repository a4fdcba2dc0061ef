"""Functions without arguments for runs on the rig."""

from tests.beds.rig.functions import Burnt, blazing, frugal, plain


def long_frugal() -> Burnt:
    return frugal(0.05)


def long_plain() -> Burnt:
    return plain(0.05)


def long_hungry() -> Burnt:
    return blazing(0.05)
