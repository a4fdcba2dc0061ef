"""What the extender does beside answering: nudges, what it says of itself when it hears nothing, absurd profiles."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
from tests.beds.kubernetes import Api, ControlPlane, Part, add_nodes, eventually, fake_node, fake_pod
from tests.beds.kubernetes.processes import free_ports
from tests.kubernetes.extending import Extending, curve, extending
from tests.kubernetes.live import client, eventually_so, relayed
from tests.kubernetes.running import PROFILE, ask, scheduling

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.extender import pages as extender_pages
from wattloom.kubernetes.extender.nudge import ANNOTATION, Nudge
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.model.profiles import MILLIWATTS, Found, Profiles
from wattloom.kubernetes.publishing.watts import WattsPublisher


def nudged(api: Api, node: str) -> bool:
    return ANNOTATION in api.get(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {})


def annotated(name: str, profile: str) -> dict[str, Any]:
    return fake_node(name, annotations={PROFILE: profile})


# -- nudges ------------------------------------------------------------------------------------------------------------


def test_a_nudge_that_could_not_be_given_is_given_later(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    add_nodes(api, [fake_node("n1")])

    async def live() -> None:
        async with relayed(plane, tmp_path) as (near, relay):
            backoff = Backoff(0.05, 0.2)
            nudge = Nudge(near, backoff)
            task = asyncio.create_task(nudge.run())
            relay.answers_to_lose = 1_000_000
            nudge.refused()
            nudge.freed("n1")
            await eventually_so(lambda: backoff.times >= 1)
            relay.answers_to_lose = 0
            await eventually_so(lambda: nudge.given == 1)
            nudge.freed("n1")  # nobody was refused since
            await asyncio.sleep(0.1)
            assert nudge.given == 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    event_loop.run(live())
    assert nudged(api, "n1")


def test_a_nudge_at_a_node_that_is_gone_is_given_at_another(plane: ControlPlane, api: Api) -> None:
    add_nodes(api, [fake_node("n1")])

    async def live() -> None:
        async with client(plane) as near:
            nudge = Nudge(near)
            task = asyncio.create_task(nudge.run())
            nudge.refused()
            nudge.freed("gone")
            await asyncio.sleep(0.1)
            nudge.freed("n1")
            await eventually_so(lambda: nudge.given == 1)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    event_loop.run(live())
    assert nudged(api, "n1")


def refused(listen: str, running: Extending, *names: str) -> None:
    """kube-scheduler asks about a pod of one core, and gets no node."""
    body = fake_pod("one", cpu="1")
    body["metadata"] |= {"uid": "uid-of-one", "namespace": "default"}
    question = json.dumps({"Pod": body, "NodeNames": names}).encode()
    with urlopen(f"http://{listen}/filter", question, timeout=30) as answer:
        assert json.loads(answer.read())["NodeNames"] == []
    assert running.answered("filter", "refused") == 1


@pytest.mark.parametrize(
    ("event", "nudged_at"), [("an idle node leaves", "n1"), ("a node comes", "n3"), ("a cap is raised", "n1")]
)
def test_room_that_no_pod_has_left_is_told_too(plane: ControlPlane, api: Api, event: str, nudged_at: str) -> None:
    """50 W idle and 25 W a core."""
    add_nodes(api, [annotated("n1", curve(250, capW=60.0 if event == "a cap is raised" else None))])
    if event != "a cap is raised":
        add_nodes(api, [annotated("n2", curve(250))])
    cap_w = {"an idle node leaves": 110.0, "a node comes": 160.0}.get(event)
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with extending(plane, listen, cap_w=cap_w) as running:
        refused(listen, running, "n3" if event == "a node comes" else "n1")
        if event == "an idle node leaves":
            api.delete("/api/v1/nodes/n2", gracePeriodSeconds=0)
        elif event == "a node comes":
            add_nodes(api, [annotated("n3", curve(250))])
        else:
            raised = {"metadata": {"annotations": {PROFILE: curve(250, capW=90.0)}}}
            api.patch("/api/v1/nodes/n1", raised)
        eventually(lambda: nudged(api, nudged_at))
        assert running.call(lambda: running.extender.nudge.given) == 1


# -- out of step -------------------------------------------------------------------------------------------------------


def test_who_hears_nothing_for_long_is_not_ready_until_he_does(
    breakable: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender_pages, "STALE_S", 1.0)
    plane = breakable
    http = free_ports(1)[0]
    with extending(plane, http=f"127.0.0.1:{http}"):
        assert ask(http, "/readyz") == (200, "ok\n")
        plane.kill(Part.API_SERVER)
        eventually(lambda: ask(http, "/readyz")[0] == 503, 60)
        assert ask(http, "/readyz")[1].startswith("out of step with the cluster for ")
        metric = 'wattloom_extender_watch_failing_seconds{resource="nodes"} '
        assert metric in ask(http, "/metrics")[1]
        plane.restart(Part.API_SERVER)
        eventually(lambda: ask(http, "/readyz") == (200, "ok\n"), 120)
        assert f"{metric}0.0" in ask(http, "/metrics")[1]


# -- caps that leave no room -------------------------------------------------------------------------------------------


def test_a_cap_below_what_the_nodes_draw_idle_is_told_once(
    plane: ControlPlane, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    add_nodes(api, [annotated("n1", curve(150)), fake_node("unknown")])
    words = "the cap of 60 W is less than the 100 W that the nodes draw idle: every pod is refused"
    with extending(plane, cap_w=60.0) as running:
        assert running.call(lambda: running.extender.state.nodes.idle_w) == 50.0
        assert "draw idle" not in caplog.text
        add_nodes(api, [annotated("n2", curve(150))])
        eventually(lambda: words in caplog.text)
        add_nodes(api, [annotated("n3", curve(150))])
        eventually(lambda: running.call(lambda: running.extender.state.nodes.idle_w) == 150.0)
        running.call(running.extender._look_at_cap)
    assert caplog.text.count("draw idle") == 1


# -- absurd profiles ---------------------------------------------------------------------------------------------------

ABSURD = (
    {"cores": 8, "capW": 1e308},
    {"cores": 8, "tdpW": 1e308},
    {"cores": 8, "coresWatts": [[0, 1e308], [8, 1.7e308]]},
)


@pytest.mark.parametrize("who", ["extender", "scheduler"])
def test_an_absurd_profile_makes_the_node_unknown_and_harms_nobody(plane: ControlPlane, api: Api, who: str) -> None:
    add_nodes(api, [annotated(f"absurd-{number}", json.dumps(spec)) for number, spec in enumerate(ABSURD)])
    add_nodes(api, [annotated("good", curve(150))])
    with extending(plane, publish_watts=True) if who == "extender" else scheduling(plane) as running:
        eventually(lambda: api.get("/api/v1/nodes/good")["status"]["capacity"].get(MILLIWATTS) == "150k")
        problems = running.call(lambda: running.part.state.nodes.problems)
        assert [problems[f"absurd-{number}"].partition(": ")[0].rpartition(".")[2] for number in range(3)] == [
            "capW",
            "tdpW",
            "coresWatts",
        ]
        assert running.error is None


def test_a_node_of_which_it_cannot_be_said_what_it_may_draw_is_passed_over(
    plane: ControlPlane, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = {name: annotated(name, curve(150)) for name in ("bad", "good")}
    add_nodes(api, bodies.values())
    known = {name: msgspec.convert(body, Node) for name, body in bodies.items()}

    def found(name: str) -> Found:
        if name == "bad":
            raise OverflowError("too much")
        return Profiles().of(known[name])

    async def live() -> None:
        async with client(plane) as near:
            publisher = WattsPublisher(near, known.get, found)
            task = asyncio.create_task(publisher.run())
            for name in known:
                publisher.changed(name)
            await eventually_so(lambda: publisher.written == 1 or task.done())
            assert not task.done()
            assert publisher.failed >= 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    event_loop.run(live())
    assert "is not published on node bad" in caplog.text
