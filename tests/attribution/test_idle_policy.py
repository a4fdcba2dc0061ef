"""What nobody used is borne by somebody or by the machine: to the last grain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.attribution.idle_policy import POLICIES, Claim, IdlePolicy, share_out
from wattloom.energy.grains import GRAIN_J, to_grain

claims = st.dictionaries(
    st.integers(0, 30),
    st.builds(Claim, st.floats(0, 1e5).map(to_grain), st.floats(0, 64)),
    max_size=20,
)


@given(st.sampled_from(POLICIES), st.floats(0, 1e6).map(to_grain), claims, st.floats(0, 1e4), st.floats(0, 128))
def test_parts_and_rest_add_up_to_the_last_bit(
    policy: IdlePolicy, joules: float, claims: dict[int, Claim], unattributed: float, cores: float
) -> None:
    shared = share_out(policy, joules, claims, unattributed_j=unattributed, cores=cores)
    assert sum(shared.parts.values()) + shared.node_j == joules
    assert shared.node_j >= 0.0
    assert all(part >= 0.0 and part / GRAIN_J == int(part / GRAIN_J) for part in shared.parts.values())


def test_node_leaves_all_of_it_with_the_machine() -> None:
    shared = share_out("node", 8.0, {"a": Claim(1.0, 2.0)}, cores=4)
    assert (shared.of("a"), shared.node_j) == (0.0, 8.0)


def test_pro_rata_goes_by_active_joules_and_nobodys_joules_leave_their_part() -> None:
    shared = share_out("pro-rata", 8.0, {"a": Claim(3.0), "b": Claim(1.0), "idle": Claim(0.0)}, unattributed_j=4.0)
    assert (shared.of("a"), shared.of("b"), shared.of("idle"), shared.node_j) == (3.0, 1.0, 0.0, 4.0)


def test_pro_rata_with_nobody_active_stays_with_the_machine() -> None:
    assert share_out("pro-rata", 8.0, {"a": Claim(0.0)}).node_j == 8.0


def test_reserved_is_borne_busy_or_not_and_what_is_free_stays_with_the_machine() -> None:
    shared = share_out("reserved", 8.0, {"busy": Claim(9.0, 1.0), "idle": Claim(0.0, 2.0), "none": Claim(5.0)}, cores=4)
    assert (shared.of("busy"), shared.of("idle"), shared.of("none"), shared.node_j) == (2.0, 4.0, 0.0, 2.0)


def test_more_may_be_reserved_than_there_is() -> None:
    shared = share_out("reserved", 8.0, {"a": Claim(0.0, 6.0), "b": Claim(0.0, 2.0)}, cores=4)
    assert (shared.of("a"), shared.of("b"), shared.node_j) == (6.0, 2.0, 0.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_without_claims_all_stays(policy: IdlePolicy) -> None:
    assert share_out(policy, 5.0, {}, cores=2).node_j == 5.0
