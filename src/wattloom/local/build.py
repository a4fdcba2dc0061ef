"""How an executor begins: its arguments and settings become nodes, a policy, a journal, keys and accounting.

Owns what each of them means and what is refused, and whether devices are metered beside the processors. What is done
with the parts is the executor's and the dispatcher's.
"""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wattloom.attribution.account import Account
from wattloom.cluster.fit import tdp_doubts
from wattloom.errors import InputError
from wattloom.journal import default_path
from wattloom.journal.default_path import numbered_there, open_first_free, something_left
from wattloom.journal.journal import Journal, boot_id
from wattloom.journal.keys import KeyStore, keys_path
from wattloom.journal.retention import DAY_S, Retention
from wattloom.local.accounting import Accounting
from wattloom.local.idempotency import Keys
from wattloom.local.metered_accounting import MeteredAccounting
from wattloom.local.nodes import LocalNode, VirtualNode, virtual_nodes, whole_machine
from wattloom.local.virtual_accounting import VirtualAccounting
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.metering.choosing import choose_meter
from wattloom.metering.patient_meter import WAIT_S, PatientMeter
from wattloom.metering.protocol import Meter
from wattloom.policies.loading import as_recorded, is_file, load_policy, with_options
from wattloom.policies.protocol import Policy
from wattloom.program import APART, this_program, working_folder
from wattloom.setting_groups import Local
from wattloom.settings import (
    default_journal,
    launchers_unused_since,
    named_by_the_folder,
    not_run,
    of_the_same_launcher,
)

if TYPE_CHECKING:
    from wattloom.attribution.gpu_beside import DevicesBeside

LOG: Final = logging.getLogger("wattloom")
MOST_LOOKED_AT: Final = 20
"""Journals of other commands that are asked for what was left in them."""
LEFT_BY_ANOTHER: Final = (
    "%s holds unfinished calls of another command in this folder, which are not run here. To see them: wattloom tasks "
    "--journal %s; to run them: wattloom.Executor(journal='%s'); to forget them: wattloom tasks prune --unfinished "
    "--older-than 0 --journal %s"
)
HANGS_S: Final = 0.1
"""So long calls wait for a meter's answer; what comes later is taken at the next reading, as of its own time."""
DEV = Path("/dev")
NODES: Final = ("nvidiactl", "kfd", "dxg", "accel")
"""NVIDIA's driver, AMD's, either in a Windows' Linux, and accelerators of others."""


def whole_number(name: str, given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{name} must be a whole number, not {given!r}")
    if given <= 0:
        raise ValueError(f"{name} must be greater than 0")
    return given


def check_context(context: object) -> None:
    """Workers are started afresh, as by "spawn", whatever is given; who wants to fork may count on what is not so."""
    if context is None:
        return
    method = getattr(context, "get_start_method", None)
    if method is None:
        raise TypeError(f"mp_context must be a context of multiprocessing, not {type(context).__name__}")
    if method() == "fork":
        warnings.warn(
            "workers of wattloom are started afresh, not forked: they have nothing of this process but functions, "
            'their arguments and what the initializer does. Leave mp_context out, or give that of "spawn"',
            RuntimeWarning,
            stacklevel=3,
        )


def local_nodes(here: MachineProfile, workers: int | None, wanted: Sequence[VirtualNode] | None) -> list[LocalNode]:
    if wanted is None:
        return [whole_machine(here, workers)]
    if workers is not None:
        raise InputError("max_workers", "virtual nodes say themselves how many cores they have")
    if not wanted:
        raise InputError("nodes", "name at least one")
    return virtual_nodes(wanted, here)


def policy_maker(given: str | Policy, max_workers: int) -> tuple[str, Callable[[], Policy]]:
    """How it is written, and how one is made. A ready one is all there is. Who says how many workers there are at most
    does not get more of them because a policy sets aside less than calls ask for, unless that is asked for too."""
    if not isinstance(given, str):
        return given.name, lambda: given
    given = as_recorded(given)
    policy = load_policy(given)  # what is wrong with it is said now
    spec = with_options(given, policy.in_full) if max_workers and policy.terms.overcommits else given
    if spec != given:
        LOG.info("%s is used as %s: at most %d calls run at once here", given, spec, max_workers)
    return spec, lambda: load_policy(spec)


def say_where_tdp_is_not_kept(policy: Policy, nodes: list[LocalNode]) -> None:
    for note in tdp_doubts(Machine(node.profile) for node in nodes) if policy.terms.tdp else ():
        LOG.warning("%s: %s", policy.name, note)


def refuse_code_of_the_folder(settings: Local, policy: bool, journal: bool) -> None:
    """Where a policy, a journal or a file of keys comes from the settings: not from files of a folder that may be
    anybody's."""
    named = named_by_the_folder("local")
    if policy and is_file(settings.policy) and "policy" in named:
        raise not_run(named["policy"], "a file of Python", "WATTLOOM_LOCAL__POLICY")
    if journal and settings.journal and "journal" in named:
        raise not_run(named["journal"], "a journal, which holds calls to be made", "WATTLOOM_LOCAL__JOURNAL")
    if settings.keys and "keys" in named:
        raise not_run(named["keys"], "a file of keys, which holds pickled results", "WATTLOOM_LOCAL__KEYS")


def open_journal(given: str | Path, settings: Local) -> Journal:
    program = " ".join(sys.argv[:1]) or "python"
    if APART in this_program():
        program = f"{program} in {working_folder() or 'a folder that is gone'}"
    retention = Retention(settings.retention_days, settings.retention_megabytes)
    if given:
        return Journal.open(Path(given), durability=settings.durability, program=program, retention=retention)
    base = default_journal()
    journal = open_first_free(base, durability=settings.durability, program=program, retention=retention)
    for left in islice(of_the_same_launcher(base), MOST_LOOKED_AT):
        if something_left(left):
            LOG.warning(LEFT_BY_ANOTHER, *[left] * 4)
    for unused in islice(launchers_unused_since(time.time() - settings.retention_days * DAY_S, base), MOST_LOOKED_AT):
        default_path.remove(unused)
    return journal


def key_store(journal: Journal, named: str | Path, settings: Local) -> Keys:
    """Copies of a program that have journals by themselves share those of the first; a named journal has its own."""
    base = journal.path if named else default_journal()
    path = Path(settings.keys).absolute() if settings.keys else keys_path(base)
    store = KeyStore(path, journal.path, boot_id(), settings.durability, settings.key_days)
    return Keys(store, journal.spool, lambda: [base] if named else numbered_there(base))


def new_accounting(meter: str | Meter, here: MachineProfile, nodes: list[LocalNode]) -> Accounting | None:
    if meter == "off":
        return None
    if nodes[0].virtual:
        return VirtualAccounting(nodes)
    if isinstance(meter, str):
        meter = choose_meter(here, "" if meter == "auto" else meter)
    patient = PatientMeter(meter, HANGS_S, first_s=WAIT_S)  # one that hangs is not to stop every call
    return MeteredAccounting(Account(patient, here), nodes[0].name, devices_beside(meter, here))


def devices_beside(meter: Meter, profile: MachineProfile) -> "DevicesBeside | None":
    """The devices whose joules are to be added to the meter's. None: there are none, or they are in it already."""
    if sees_devices(meter) or not any((DEV / node).exists() for node in NODES):
        return None
    from wattloom.attribution.gpu_beside import DevicesBeside
    from wattloom.metering.choosing import device_meters

    found = device_meters(profile)
    if not found:
        LOG.info("there is a device that no meter can read, so its joules are no call's: see `wattloom meter list`")
    return DevicesBeside(found) if found else None


def sees_devices(meter: Meter) -> bool:
    """Whether the devices' joules are in the meter's: at the plug they are, if it is measured. An estimate of the plug
    is worked out from CPU time, which knows of no device."""
    return meter.quantity == "device" or (meter.quantity == "wall" and meter.provenance == "measured")
