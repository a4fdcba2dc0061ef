"""Taking and returning shares of devices."""

import hypothesis.strategies as st
from hypothesis import given

from wattloom.cluster.node_class import DeviceUse, NodeClass, return_devices, take_devices
from wattloom.machines.machine import Machine
from wattloom.testing.builders import LINEAR, node
from wattloom.units import MILLI

SHARE = st.one_of(st.integers(1, 999), st.sampled_from([1000, 2000, 3000]))


def class_with(**devices: int) -> NodeClass:
    there = Machine(LINEAR)
    return NodeClass(0, NodeClass.key_of(node("a", devices=devices), there), there)


EMPTY: DeviceUse = ((0, 0), (0, 0, 0))


@given(st.lists(st.tuples(st.dictionaries(st.sampled_from(["fpga", "gpu"]), SHARE), st.integers(0, 20)), max_size=30))
def test_returning_what_was_taken_is_the_exact_inverse(wishes: list[tuple[dict[str, int], int]]) -> None:
    cls, used = class_with(gpu=3, fpga=2), EMPTY
    taken: list[DeviceUse] = []
    for wanted, leaves in wishes:
        before = used
        granted = take_devices(cls, used, wanted)
        if granted is not None:
            used, grant = granted
            assert return_devices(used, grant) == before
            for (kind, _), shares in zip(cls.devices, grant, strict=True):
                assert sum(shares) == wanted.get(kind, 0)
            taken.append(grant)
        assert all(0 <= share <= MILLI for use in used for share in use)
        if taken and leaves % 2:
            used = return_devices(used, taken.pop(leaves % len(taken)))
    for grant in taken:
        used = return_devices(used, grant)
    assert used == EMPTY


@given(st.integers(1, 999), st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_a_share_goes_to_the_fullest_device_with_room(share: int, use: list[int]) -> None:
    granted = take_devices(class_with(gpu=len(use)), (tuple(use),), {"gpu": share})
    room = [used for used in use if used + share <= MILLI]
    if granted is None:
        assert not room
    else:
        chosen = next(position for position, got in enumerate(granted[1][0]) if got)
        assert use[chosen] == max(room)
        assert chosen == use.index(max(room))


def test_a_device_the_class_does_not_have_is_not_granted() -> None:
    assert take_devices(class_with(gpu=1), ((0,),), {"tpu": 100}) is None
