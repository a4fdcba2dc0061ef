"""A plan carried out: where calls go, when they wait, when they go elsewhere, and what is said of it."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from wattloom import api
from wattloom.cluster.reasons import Reason
from wattloom.errors import EventRefused, InputError, PolicyError
from wattloom.history.explanation import Explanation, explain
from wattloom.history.log import Log
from wattloom.planning.plan import Assignment, Plan, Server
from wattloom.planning.plan_file import encode_plan
from wattloom.planning.plan_store import find_plan, keep_plan, plans_folder
from wattloom.policies import planned
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.loading import as_recorded, load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place, Wait
from wattloom.testing.builders import ARM, LINEAR, requirements, variant
from wattloom.testing.harness import Harness
from wattloom.testing.policy_clusters import History
from wattloom.testing.policy_conformance import CHECKS, SEEDS, Check, check_name


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def part(function: str, server: str, cores: int = 1, rate: float = 1.0, **more: str) -> Assignment:
    return Assignment(function, server, rate, cores, 5.0, 1.0, **more)


def plan(*parts: Assignment, servers: Iterable[Server] = ()) -> Plan:
    return Plan(policy="energy-aware", goal="energy", assignments=parts, servers=tuple(servers), objective=1.0)


def file_of(folder: Path, of: Plan) -> Path:
    path = folder / "plan.json"
    path.write_bytes(encode_plan(of))
    return path


def two_servers(spec: str = "planned", **seconds: float) -> Harness:
    """By joules alone everything would go to `arm`, which draws a fifth."""
    h = Harness(new_policy=lambda: load_policy(spec))
    h.node("arm", ARM).node("x86", LINEAR)
    return h.function("f", seconds=seconds or {"linear": 1.0, "arm": 1.0})


def under(of: Plan, spec: str = "planned") -> Harness:
    h = two_servers(spec)
    h.tell(ev.PlanChanged(h.time, keep_plan(of)))
    return h


def decided(h: Harness, task: str) -> Explanation:
    """The decision on a new task, laid open."""
    stories: list[Explanation] = []
    h.engine.watcher = lambda record: stories.append(explain(record, h.engine.ledger.view, h.policy))
    h.submit(task)
    h.engine.watcher = None
    return stories[-1]


# -- following ---------------------------------------------------------------------------------------------------------


def test_without_a_plan_it_is_least_joules() -> None:
    h = two_servers()
    h.submit("t")
    assert h.where("t") == "arm"
    cited = decided(h, "t2").plan
    assert cited is not None
    assert (cited.digest, cited.reason) == ("", Reason.NO_PLAN)


def test_calls_go_where_the_plan_says() -> None:
    h = under(plan(part("f", "x86")))
    h.submit("t")
    assert h.where("t") == "x86"


def test_the_plan_may_be_named_by_its_file_or_by_its_digest(tmp_path: Path) -> None:
    of = plan(part("f", "x86"))
    for named in (str(file_of(tmp_path, of)), keep_plan(of)):
        h = two_servers(f"planned:plan={named}")
        h.submit("t")
        assert h.where("t") == "x86"


def test_the_plan_that_changed_last_holds(tmp_path: Path) -> None:
    h = two_servers(f"planned:plan={file_of(tmp_path, plan(part('f', 'x86')))}")
    h.tell(ev.PlanChanged(h.time, keep_plan(plan(part("f", "arm")))))
    h.submit("t")
    assert h.where("t") == "arm"


def test_the_build_that_the_plan_names_is_taken_although_another_is_faster() -> None:
    h = Harness(new_policy=lambda: load_policy("planned"))
    h.node("x86", LINEAR)
    builds = (variant("quick", seconds={"linear": 1.0}), variant("small", seconds={"linear": 2.0}))
    h.function("f", variants=builds)
    h.tell(ev.PlanChanged(h.time, keep_plan(plan(part("f", "x86", variant="small")))))
    h.submit("t")
    placed = h.placements["t"][-1]
    assert (placed.node, placed.variant) == ("x86", "small")


def test_a_build_that_the_function_does_not_have_is_not_waited_for() -> None:
    h = under(plan(part("f", "x86", variant="wasm")))
    h.submit("t")
    assert h.where("t") == "arm"


def test_a_split_function_fills_its_parts_as_they_were_planned() -> None:
    """Three quarters of the rate here, one quarter there: so go the first four calls."""
    h = under(plan(part("f", "x86", cores=3, rate=3.0), part("f", "arm", cores=1, rate=1.0)))
    for number in range(4):
        h.submit(f"t{number}")
    where = [h.where(f"t{number}") or "" for number in range(4)]
    assert sorted(where) == ["arm", "x86", "x86", "x86"]


# -- the share ---------------------------------------------------------------------------------------------------------


def waits(instructions: Iterable[object]) -> list[Reason]:
    return [each.reason for each in instructions if isinstance(each, Wait)]


def test_a_function_has_no_more_cores_at_once_than_the_plan_gives_it() -> None:
    h = under(plan(part("f", "x86", cores=2)))
    h.submit("t1")
    h.submit("t2")
    assert waits(h.submit("t3")) == [Reason.PLANNED_SHARE_IN_USE]
    h.pass_time(0.5)
    h.finish("t1")
    assert h.where("t3") == "x86"


def test_a_call_that_has_waited_for_ten_executions_goes_elsewhere() -> None:
    h = under(plan(part("f", "x86", cores=1)))
    h.submit("t1")
    h.submit("t2")
    h.tell(ev.Tick(9.9))
    assert h.where("t2") is None
    h.tell(ev.Tick(10.0))
    assert h.where("t2") == "arm"


def test_how_long_it_waits_is_an_option() -> None:
    h = under(plan(part("f", "x86", cores=1)), "planned:wait=0")
    h.submit("t1")
    h.submit("t2")
    assert (h.where("t1"), h.where("t2")) == ("x86", "arm")
    h = under(plan(part("f", "x86", cores=1)), "planned:wait=inf")
    h.submit("t1")
    h.submit("t2")
    h.tell(ev.Tick(1e6))
    assert h.where("t2") is None
    h.finish("t1")
    assert h.where("t2") == "x86"


def test_a_server_that_others_have_filled_is_waited_for() -> None:
    h = under(plan(part("f", "x86", cores=4)))
    h.function("other", seconds={"linear": 1.0, "arm": 1.0})
    for number in range(4):  # the plan is silent about it: by least joules
        h.submit(f"o{number}", "other")
    h.lose("arm")
    h.submit("o5", "other")
    assert h.where("o5") == "x86"
    for number in range(6, 9):
        h.submit(f"o{number}", "other")
    h.node("arm", ARM)
    assert waits(h.submit("t")) == [Reason.PLANNED_SERVER_FULL]


def test_a_call_larger_than_the_share_is_let_in_alone() -> None:
    h = under(plan(part("f", "x86", cores=1)))
    h.submit("t", needs=requirements(2.0))
    assert h.where("t") == "x86"


# -- where the plan says nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (plan(part("g", "x86")), Reason.NOT_IN_PLAN),
        (plan(part("f", "gone")), Reason.PLANNED_SERVER_GONE),
        (plan(part("f", "x86", variant="wasm")), Reason.PLANNED_SERVER_UNFIT),
    ],
)
def test_the_fall_back_says_why(of: Plan, reason: Reason) -> None:
    h = under(of)
    story = decided(h, "t")
    assert story.node == "arm"
    assert story.plan is not None
    assert (story.plan.digest, story.plan.followed, story.plan.reason) == (of.digest, False, reason)


def test_a_followed_plan_is_cited() -> None:
    of = plan(part("f", "x86", cores=3, rate=12.0))
    h = under(of)
    h.submit("t1")
    story = decided(h, "t2")
    cited = story.plan
    assert cited is not None
    assert (cited.digest, cited.server, cited.cores, cited.in_use, cited.rate) == (of.digest, "x86", 3, 1.0, 12.0)
    assert cited.followed
    assert {each.first: each.reason for each in story.candidates} == {
        "x86": Reason.TAKEN, "arm": Reason.PLANNED_ELSEWHERE,
    }  # fmt: skip


# -- the plan is found -------------------------------------------------------------------------------------------------


def test_a_plan_that_cannot_be_found_is_refused_and_nothing_changes() -> None:
    h = two_servers()
    refusal = h.refused(ev.PlanChanged(h.time, "ab" * 16))
    assert "wattloom plan keep" in str(refusal)
    assert str(plans_folder()) in str(refusal)


def test_other_policies_do_not_mind_which_plan_holds() -> None:
    h = two_servers("spread")
    h.tell(ev.PlanChanged(h.time, "ab" * 16))


def test_a_policy_with_a_plan_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(PolicyError, match=r"planned\.plan: .*nowhere\.json: cannot be read"):
        load_policy("planned:plan=nowhere.json")
    with pytest.raises(PolicyError, match="is not in"):
        load_policy(f"planned:plan={'ab' * 16}")


def test_a_plan_that_was_changed_in_the_store_is_not_taken_for_the_one_it_is_named_after() -> None:
    digest = keep_plan(plan(part("f", "x86")))
    (plans_folder() / f"{digest}.json").write_bytes(encode_plan(plan(part("f", "arm"))))
    with pytest.raises(InputError, match="the file was changed"):
        find_plan(digest)
    assert keep_plan(plan(part("f", "x86"))) == digest
    assert find_plan(digest).assignments[0].server == "x86"


def test_a_log_names_the_digest_and_not_the_file(tmp_path: Path) -> None:
    of = plan(part("f", "x86"))
    path = file_of(tmp_path, of)
    spec = as_recorded(f"planned:plan={path},wait=3")
    assert spec == f"planned:plan={of.digest},wait=3"
    path.unlink()
    assert load_policy(spec).name == "planned"


@pytest.mark.parametrize("wait", ["-1", "nan"])
def test_a_wait_that_is_none_is_refused(wait: str) -> None:
    with pytest.raises(PolicyError, match="wait"):
        load_policy(f"planned:wait={wait}")


# -- through the front door --------------------------------------------------------------------------------------------

SCENARIO = """
name = "two"
plan = "plan.json"
[machines.big]
arch = "x86_64"
cores = 4
cores_watts = [[0, 20], [4, 60]]
[machines.small]
arch = "aarch64"
cores = 4
cores_watts = [[0, 5], [4, 13]]
[[nodes]]
name = "x86"
machine = "big"
[[nodes]]
name = "arm"
machine = "small"
[functions.f]
seconds = { big = 1.0, small = 1.0 }
[[arrivals]]
kind = "poisson"
rate_per_s = 1.5
duration_s = 30
functions = { f = 1 }
"""


def nodes_in(log: Path) -> set[str]:
    return {record.node for record in Log(log).records() if isinstance(record, Place)}


def test_a_scenario_names_its_plan_and_its_log_replays_to_the_same_decisions(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO)
    path = file_of(tmp_path, plan(part("f", "x86", cores=4, rate=1.5)))
    log = tmp_path / "run.log"
    api.simulate(tmp_path / "two.toml", "planned", log=log)
    path.unlink()
    assert nodes_in(log) == {"x86"}
    assert api.replay(log).same_decisions
    said = api.why("t3", log).explanations[-1].plan
    assert said is not None
    assert said.followed


def test_a_log_whose_plan_is_not_here_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO)
    file_of(tmp_path, plan(part("f", "x86", cores=3, rate=1.4)))
    log = tmp_path / "run.log"
    api.simulate(tmp_path / "two.toml", "planned", log=log)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    planned._kept_parts.cache_clear()
    with pytest.raises((InputError, EventRefused), match="wattloom plan keep"):
        api.replay(log)


def test_least_joules_would_have_gone_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO)
    file_of(tmp_path, plan(part("f", "x86", cores=4, rate=1.5)))
    log = tmp_path / "run.log"
    api.simulate(tmp_path / "two.toml", "least-joules", log=log)
    assert "arm" in nodes_in(log)


# -- the kit -----------------------------------------------------------------------------------------------------------

OF = ("declared", "carried-over", "unheard-of", "no-cpu", "wide", "labelled", "two-builds", "impossible")


def of_every_kind() -> Plan:
    """Each function on two or three of the nodes that the kit's histories have, be they fit for it or not."""
    names = sorted({name for seed in SEEDS for name in History(LeastJoules(), seed).run().engine.ledger.index.nodes})
    parts = [
        part(function, name, cores=1 + at % 3, variant="native" if function == "two-builds" and at % 2 else "")
        for at, name in enumerate(names)
        for function in (OF[at % len(OF)], OF[(at * 3 + 1) % len(OF)])
    ]
    return plan(*{(each.function, each.server): each for each in parts}.values())


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_it_conforms_with_a_plan_too(check: Check) -> None:
    digest = keep_plan(of_every_kind())
    check(lambda: load_policy(f"planned:plan={digest}"))
