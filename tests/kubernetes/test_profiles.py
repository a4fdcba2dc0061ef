"""Which machine a node is: objects, annotations, processors, and mistakes in them."""

import time
from typing import Any

import msgspec
import pytest

from wattloom.kubernetes.model.objects import MachineProfile, Node
from wattloom.kubernetes.model.profiles import ANNOTATION, Found, Profiles, milliwatts, published
from wattloom.kubernetes.options import usable_policy
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.node_cache import NodeCache
from wattloom.machines.profile import MachineProfile as Machine

CURVE: dict[str, Any] = {"cores": 8, "coresWatts": [[0, 50], [8, 200]]}


def node(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, cpu: str = "16") -> Node:
    metadata = {"name": "n1", "labels": labels or {}, "annotations": annotations or {}}
    status = {"capacity": {"cpu": cpu}, "nodeInfo": {"architecture": "amd64"}}
    return msgspec.convert({"metadata": metadata, "status": status}, Node)


def profile(name: str = "r1", **spec: Any) -> MachineProfile:
    text = msgspec.json.encode({"metadata": {"name": name}, "spec": spec})
    return msgspec.json.decode(text, type=MachineProfile)


def test_an_object_that_names_the_node_comes_before_selectors_and_they_before_the_annotation() -> None:
    annotated = node({"pool": "a", "disk": "ssd"}, {ANNOTATION: msgspec.json.encode(CURVE).decode()})
    wide = profile("wide", **CURVE, selector={"matchLabels": {"pool": "a"}})
    narrow = profile("narrow", **CURVE, selector={"matchLabels": {"pool": "a", "disk": "ssd"}})
    named = profile("named", **CURVE, nodeName="n1")
    elsewhere = profile("elsewhere", **CURVE, nodeName="n2")
    for given, start in (
        ([wide, elsewhere, named, narrow], "named-"),
        ([wide, elsewhere, narrow], "narrow-"),
        ([wide, elsewhere], "wide-"),
        ([elsewhere], "annotated-"),
    ):
        assert Profiles(given).of(annotated).machine.name.startswith(start)


def test_equal_profiles_are_one_machine_whatever_they_are_called_and_for_whom() -> None:
    other = msgspec.convert({"metadata": {"name": "n2"}, "status": {"nodeInfo": {"architecture": "amd64"}}}, Node)
    given = [profile("first", **CURVE, nodeName="n1"), profile("second", **CURVE, nodeName="n2", capW=90.0)]
    profiles = Profiles(given)
    first, second = profiles.of(node()), profiles.of(other)
    assert first.machine is second.machine
    assert first.machine.name.startswith("first-")
    assert (first.cap_w, second.cap_w) == (None, 90.0)
    arm = msgspec.convert({"metadata": {"name": "n2"}, "status": {"nodeInfo": {"architecture": "arm64"}}}, Node)
    assert profiles.of(arm).machine.arch == "aarch64"


def test_the_first_by_name_counts_among_selectors_with_as_many_conditions() -> None:
    labels = {"pool": "a", "disk": "ssd"}
    given = [
        profile("c", **CURVE, selector={"matchLabels": {"pool": "a"}}),
        profile("b", cores=2, selector={"matchLabels": {"disk": "ssd"}}),
        profile("a", cores=3, selector={"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
    ]
    assert Profiles(given).of(node(labels)).machine.name.startswith("a-")
    assert Profiles(given[:2]).of(node(labels)).machine.name.startswith("b-")
    assert Profiles(given).of(node({"pool": "a"})).machine.name.startswith("c-")
    assert Profiles(given).of(node({"pool": "b"})).by == "nothing"


def test_thousands_of_profiles_for_single_nodes_are_not_looked_through_for_each_node() -> None:
    given = [profile(f"p{number}", **CURVE, nodeName=f"n{number}") for number in range(5_000)]
    given += [profile(f"s{number}", **CURVE, selector={"matchLabels": {"hw": f"h{number}"}}) for number in range(5_000)]
    profiles, asked = Profiles(given), node({"hw": "h4999"})
    begun = time.process_time()
    for number in range(1, 1_000):
        named = msgspec.convert({"metadata": {"name": f"n{number}"}}, Node)
        assert profiles.of(named).by == profiles.of(asked).by == "object"
    assert time.process_time() - begun < 2.0, "looking through all of them takes 10 s"


def test_a_profile_gives_curve_cap_and_what_the_node_may_draw() -> None:
    found = Profiles([profile(**CURVE, nodeName="n1", tdpW=180.0, capW=150.0)]).of(node())
    assert (found.by, found.cap_w, found.problem) == ("object", 150.0, "")
    assert (found.machine.arch, found.machine.watts) == ("x86_64", ((0.0, 50.0), (8.0, 200.0)))
    assert milliwatts(found) == 150_000
    assert milliwatts(Found(found.machine, "object")) == 180_000
    bare = Profiles([profile(**CURVE, nodeName="n1")]).of(node())
    assert milliwatts(bare) == 200_000


def test_a_profile_that_changes_is_another_machine_and_one_that_only_moves_is_not() -> None:
    def name(**spec: Any) -> str:
        return Profiles([profile(**CURVE, **spec)]).of(node({"pool": "a"})).machine.name

    there = name(nodeName="n1")
    assert there == name(selector={"matchLabels": {"pool": "a"}})
    assert there != name(nodeName="n1", speed=1.5)
    assert there == "r1-cf9ec5"  # as in logs there are: the digest is of what is said, in one order


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"cores": "many"}, "cores"),
        ({"cores": 8, "coresWatts": [[0, 50], [8, 20]]}, "coresWatts:"),
        ({"cores": 8, "wats": 3}, "wats"),
        ({"cores": 8, "cores_watts": [[0, 50], [8, 90]]}, "unknown field"),
        ({"cores": 8, "quantity": "soul"}, "quantity"),
        ({"cores": 8, "capW": -1}, "capW"),
        ({"coresWatts": [[0, 1]]}, "cores"),
        ({"cores": 8, "capW": 1e308}, ".capW: must be at most 1000000000 W"),
        ({"cores": 8, "tdpW": 1e308}, ".tdpW: must be at most"),
        ({"cores": 8, "sleepW": 1e10, "coresWatts": [[0, 50], [8, 90]]}, ".sleepW: must be at most"),
        ({"cores": 8, "coresWatts": [[0, 1e308], [8, 1.7e308]]}, ".coresWatts: must be at most"),
        ({"cores": 8, "coresWatts": [[0, 5], [1e300, 9]]}, ".coresWatts: must be for at most 1000000 cores"),
        ({"cores": 8, "loadWatts": [5, 1e300]}, ".loadWatts: must be at most"),
        ({"cores": 8, "speed": 1e-300}, ".speed: must be between"),
        ({"cores": 8, "arch": "aarch64"}, ".arch: is aarch64, but the node says that it is x86_64"),
        ({"cores": 8, "arch": "arm64"}, ".arch: is arm64"),
        ({"cores": 8, "coresWatts": [[0, 70], [4, 100]]}, ".coresWatts: ends at 4 of 8 cores"),
        ({"cores": 8, "coresWatts": [[0, 70]]}, ".coresWatts: ends at 0 of 8 cores"),
        (CURVE | {"loadWatts": [50, 200]}, ".loadWatts: give either coresWatts or loadWatts, not both"),
        (CURVE | {"wakeS": 3}, ".wakeS: means nothing without sleepW"),
    ],
)
def test_a_profile_with_a_mistake_leaves_the_node_unknown_and_names_the_field(spec: dict[str, Any], words: str) -> None:
    known_processor = {"wattloom.dev/cpu-model": "Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz"}
    by_object = Profiles([profile(**spec, nodeName="n1")]).of(node(annotations=known_processor))
    text = msgspec.json.encode(spec).decode()
    by_annotation = Profiles().of(node(annotations={**known_processor, ANNOTATION: text}))
    for found in (by_object, by_annotation):
        assert found.machine.watts == ()
        assert words in found.problem
        assert milliwatts(found) is None
    assert "MachineProfile r1" in by_object.problem
    assert ANNOTATION in by_annotation.problem


@pytest.mark.parametrize("arch", ["amd64", "x86_64", ""])
def test_an_architecture_may_be_written_as_kubernetes_does(arch: str) -> None:
    found = Profiles([profile(**CURVE, nodeName="n1", arch=arch)]).of(node())
    assert (found.machine.arch, found.problem) == ("x86_64", "")


def test_a_virtual_and_a_real_machine_of_one_processor_and_size_are_two_machines() -> None:
    model = {"wattloom.dev/cpu-model": "xeon-e5-2699v4"}
    real = Profiles().of(node(model)).machine
    virtual = Profiles().of(node({**model, "feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR": "true"})).machine
    assert real.watts != virtual.watts
    assert real.name != virtual.name
    assert real.name.startswith("xeon-e5-2699v4-16c16t-")
    assert Profiles().of(node(model)).machine == real


def test_an_annotation_that_is_no_json_is_told() -> None:
    assert "JSON" in Profiles().of(node(annotations={ANNOTATION: "{cores: 8"})).problem


def test_a_profile_that_does_not_even_say_for_which_nodes_harms_nobody_and_is_told() -> None:
    profiles = Profiles([profile("bad", selector="all", cores=8), profile("good", **CURVE, nodeName="n1")])
    assert profiles.of(node()).machine.name.startswith("good-")
    assert "selector" in profiles.problems["bad"]


def test_a_profile_for_no_node_at_all_is_for_none() -> None:
    assert Profiles([profile(**CURVE), profile("b", **CURVE, selector={})]).of(node()).by == "nothing"


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({}, {"wattloom.dev/cpu-model": "Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz"}),
        ({"wattloom.dev/cpu-model": "xeon-e5-2699v4"}, {}),
        (
            {
                "feature.node.kubernetes.io/cpu-model.vendor_id": "AMD",
                "feature.node.kubernetes.io/cpu-model.family": "25",
                "feature.node.kubernetes.io/cpu-model.id": "1",
            },
            {},
        ),
    ],
)
def test_without_a_profile_the_processor_tells(labels: dict[str, str], annotations: dict[str, str]) -> None:
    found = Profiles().of(node(labels, annotations))
    assert (found.by, found.machine.threads) == ("processor", 16)
    assert found.machine.watts[-1][1] > found.machine.watts[0][1] > 0.0
    assert found.machine.problem() is None
    assert found.machine.source


def test_hardware_threads_that_node_feature_discovery_tells_are_counted_as_such() -> None:
    labels = {
        "wattloom.dev/cpu-model": "xeon-e5-2699v4",
        "feature.node.kubernetes.io/cpu-hardware_multithreading": "true",
    }
    machine = Profiles().of(node(labels)).machine
    assert (machine.cores, machine.threads) == (8, 16)


@pytest.mark.parametrize("model", ["", "Quantum 9000", "riscv-thing"])
def test_a_node_of_whose_processor_nothing_is_known_is_unknown(model: str) -> None:
    found = Profiles().of(node(annotations={"wattloom.dev/cpu-model": model} if model else {}))
    assert (found.by, found.machine.watts, found.machine.threads) == ("nothing", (), 16)
    assert milliwatts(found) is None


def test_what_was_published_is_read_back_as_the_same_machine() -> None:
    machine = Machine(
        name="m", arch="x86_64", cores=4, threads=8, memory=0, watts=((0.0, 10.0), (8.0, 60.0)),
        speed=1.2, tdp_w=80.0, provenance="measured", quantity="package", source="profile of today",
    )  # fmt: skip
    body = msgspec.json.encode(published(machine, node_name="n1"))
    found = Profiles([msgspec.json.decode(body, type=MachineProfile)]).of(node())
    assert msgspec.structs.replace(found.machine, name="m") == machine
    assert b'"apiVersion":"wattloom.dev/v1alpha1"' in body


# -- what can hardly be meant ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"cores": 16}, ": has neither coresWatts nor loadWatts, so the power of its nodes is unknown"),
        ({"tdpW": 5}, ".tdpW: 5 W are less than the 50 W of an idle node"),
        ({"capW": 49.5}, ".capW: 49.5 W are less than the 50 W of an idle node"),
        ({"cores": 64, "coresWatts": [[0, 50], [64, 200]]}, ".cores: 64 are more than the 16 CPUs of a node"),
        ({"cores": 4, "coresWatts": [[0, 50], [4, 200]]}, ".threads: 4 are fewer than the 16 CPUs of a node"),
    ],
)
def test_what_can_hardly_be_meant_is_used_and_told(spec: dict[str, Any], words: str) -> None:
    whole = spec if "cores" in spec else {"cores": 16, "coresWatts": [[0, 50], [16, 200]], **spec}
    by_object = Profiles([profile(**whole, nodeName="n1")]).of(node())
    by_annotation = Profiles().of(node(annotations={ANNOTATION: msgspec.json.encode(whole).decode()}))
    assert (by_object.odd, by_object.problem) == ((f"MachineProfile r1: spec{words}",), "")
    assert (by_annotation.odd, by_annotation.problem) == ((f"metadata.annotations[{ANNOTATION}]{words}",), "")
    assert by_object.machine.cores == whole["cores"]


def test_nothing_is_said_of_what_may_well_be_meant() -> None:
    fits: dict[str, Any] = {
        "cores": 8,
        "threads": 16,
        "coresWatts": [[0, 50], [8, 180], [16, 200]],
        "tdpW": 200,
        "capW": 90,
    }
    assert Profiles([profile(**fits, nodeName="n1")]).of(node()).odd == ()
    assert Profiles([profile(**fits, nodeName="n1")]).of(node(cpu="8")).odd == ()  # siblings are off
    assert Profiles().of(node()).odd == ()
    unsized = msgspec.convert({"metadata": {"name": "n1"}}, Node)
    assert Profiles([profile(**CURVE, nodeName="n1")]).of(unsized).odd == ()


def node_cache() -> NodeCache:
    driver = TimedDriver(usable_policy("least-joules"), lambda _: None, clock=lambda: 0.0)
    return NodeCache(driver, here=lambda _: None, left=lambda _: None, busy=lambda _: False)


def named(name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Node:
    found = node(labels, annotations)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, name=name))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"cores": 16}, "MachineProfile r1: spec: has neither coresWatts nor loadWatts"),
        ({"cores": 8, "coresWatts": [[0, 70], [4, 100]]}, "MachineProfile r1: spec.coresWatts: ends at 4 of 8 cores"),
    ],
)
def test_a_profile_for_many_nodes_is_complained_of_once_until_it_changes(
    spec: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = node_cache()
    everybody: dict[str, Any] = {"selector": {"matchLabels": {"pool": "a"}}}
    nodes.profile_changed(profile(**spec, **everybody))
    nodes.refresh()
    for number in range(5):
        nodes.changed(named(f"n{number}", {"pool": "a"}))
    nodes.profile_changed(profile("other", **CURVE, nodeName="elsewhere"))
    nodes.refresh()
    nodes.changed(named("n0", {"pool": "a", "more": "labels"}))
    assert caplog.text.count(words) == 1
    assert "node n0: " in caplog.text
    nodes.profile_changed(profile(cores=16, coresWatts=[[0, 50], [16, 200]], **everybody))
    nodes.refresh()
    assert (len(caplog.records), nodes.problems) == (1, {})
    nodes.profile_changed(profile(**spec, **everybody))
    nodes.refresh()
    assert caplog.text.count(words) == 2


def test_a_profile_that_cannot_be_aimed_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    nodes = node_cache()
    nodes.profile_changed(profile("bad", selector="all", cores=8))
    for name in ("one", "two"):
        nodes.profile_changed(profile(name, **CURVE, nodeName=name))
        nodes.refresh()
    assert caplog.text.count("MachineProfile bad is not used") == 1


def test_a_processor_that_nobody_knows_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    nodes = node_cache()
    for number in range(3):
        nodes.changed(named(f"n{number}", annotations={"wattloom.dev/cpu-model": "Foo 9000"}))
    nodes.changed(named("n4", labels={"wattloom.dev/cpu-model": "Bar-1"}))
    nodes.refresh()
    said = [record.getMessage() for record in caplog.records]
    assert [each.partition(", so")[0] for each in said] == [
        "node n0: metadata.annotations[wattloom.dev/cpu-model]: no figures are known of a processor 'Foo 9000'",
        "node n4: metadata.labels[wattloom.dev/cpu-model]: no figures are known of a processor 'Bar-1'",
    ]


def test_an_annotation_with_a_mistake_is_complained_of_for_each_node_and_whenever_it_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes, wrong = node_cache(), {ANNOTATION: "{"}
    for name in ("n1", "n2", "n1"):
        nodes.changed(named(name, annotations=wrong))
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == ["node n1", "node n2"]
    nodes.changed(named("n1"))
    nodes.changed(named("n1", annotations=wrong))
    assert len(caplog.records) == 3


def test_the_idle_draw_of_all_nodes_is_summed(caplog: pytest.LogCaptureFixture) -> None:
    nodes = node_cache()
    for name in ("n1", "n2"):
        nodes.changed(named(name, annotations={ANNOTATION: msgspec.json.encode(CURVE).decode()}))
    nodes.changed(named("unknown"))
    assert nodes.idle_w == 100.0
    nodes.deleted("n1")
    assert nodes.idle_w == 50.0
