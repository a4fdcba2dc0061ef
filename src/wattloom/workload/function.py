"""Functions and their variants.

A function is what is called again and again; a variant is one build of it (an ISA, a device). Owns their declared
run times; what was learned about them lives in prediction.
"""

import msgspec

from wattloom.bounds import LONGEST_S
from wattloom.workload.requirements import Requirements, devices_problem


class Variant(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One build of a function."""

    name: str = "default"
    arch: tuple[str, ...] = ()
    """Architectures this build runs on; empty: any."""
    devices: tuple[tuple[str, float], ...] = ()
    """Devices this build needs beside those of the task."""
    seconds: dict[str, float] = {}
    """Declared run time alone, by machine."""


DEFAULT_VARIANT = Variant()


class Function(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that is called often."""

    name: str
    requirements: Requirements = Requirements()
    variants: tuple[Variant, ...] = (DEFAULT_VARIANT,)

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.name:
            return "name", "must not be empty"
        if not self.variants:
            return "variants", "must name at least one build"
        if len({variant.name for variant in self.variants}) != len(self.variants):
            return "variants", "two builds have the same name"
        for variant in self.variants:
            wrong = devices_problem(variant.devices)
            if wrong is not None:
                return f"variants.{variant.name}.{wrong[0]}", wrong[1]
            for machine, seconds in variant.seconds.items():
                if not 0.0 < seconds <= LONGEST_S:
                    field = f"variants.{variant.name}.seconds.{machine}"
                    return field, f"must be positive, at most {LONGEST_S:g} s, not {seconds}"
        wrong = self.requirements.problem()
        return None if wrong is None else (f"requirements.{wrong[0]}", wrong[1])
