"""Wrong scenario files: every mistake is an error that names the field."""

from pathlib import Path

import jsonschema
import msgspec
import pytest

from wattloom.errors import ScenarioError
from wattloom.simulation.build import trial_of
from wattloom.simulation.scenario import Scenario, builtin_names, load_scenario, parse, schema, text_of

GOOD = """
name = "good"
power_cap_w = 1000
[scheduler]
watts = 10
[machines.m]
arch = "x86_64"
cores = 4
memory_gib = 8
cores_watts = [[0, 10], [4, 50]]
[[nodes]]
machine = "m"
name = "n"
count = 2
[functions.f]
work_s = 10
[functions.g]
seconds = { m = 5 }
variants.v = { arch = ["x86_64"] }
[[arrivals]]
kind = "poisson"
rate_per_s = 1
count = 5
functions = { f = 1, g = 2 }
[[faults]]
node = "n-1"
at_s = 5
"""


def test_the_file_that_the_others_are_made_from_is_right() -> None:
    assert len(trial_of(parse(GOOD, "good.toml"), 0).arrivals) == 5


WRONG = [
    # what is written instead of what, and the field the error must name
    ('name = "good"', "", "name"),
    ('name = "good"', 'name = "good"\ncolour = "red"', "colour"),
    ('name = "good"', "name = 3", "name"),
    ("power_cap_w = 1000", "power_cap_w = -1", "power_cap_w"),
    ("power_cap_w = 1000", "power_cap_w = inf", "power_cap_w"),
    ("power_cap_w = 1000", "power_cap_w = nan", "power_cap_w"),
    ("power_cap_w = 1000", 'forecasts = "guessed"', "forecasts"),
    ("watts = 10", "watts = -1", "scheduler.watts"),
    ("watts = 10", "colour = 1", "colour"),
    ("cores = 4", "cores = 0", "machines.m.cores"),
    ("cores = 4", 'cores = "four"', "machines.m.cores"),
    ("cores = 4", "cores = 4\nthreads = 2", "machines.m.threads"),
    ("cores = 4", "cores = 4\nspeed = 0", "machines.m.speed"),
    ("cores = 4", "cores = 4\nsmt_slowdown = 0.5", "machines.m.smt_slowdown"),
    ("cores = 4", "cores = 4\nthreads = 8\nsmt_slowdown = 3", "machines.m.smt_slowdown"),
    ("cores = 4", "cores = 4\nwake_s = -1", "machines.m.wake_s"),
    ("cores = 4", "cores = 4\nwake_s = 1", "machines.m.wake_s"),
    ("cores = 4", "cores = 4\nwake_j = 1", "machines.m.wake_j"),
    ("cores = 4", "cores = 100_001", "machines.m.cores"),
    ("cores = 4", "cores = 4\nsleep_w = nan", "machines.m.sleep_w"),
    ("cores = 4", "cores = 4\ntdp_w = -5", "machines.m.tdp_w"),
    ("cores = 4", 'cores = 4\nquantity = "soul"', "machines.m.quantity"),
    ("cores = 4", 'cores = 4\nprovenance = "dreamt"', "machines.m.provenance"),
    ("cores = 4", "cores = 4\nload_watts = [1, 2]", "machines.m.load_watts"),
    ("memory_gib = 8", "memory_gib = -8", "machines.m.memory_gib"),
    ("memory_gib = 8", "memory_gib = nan", "machines.m.memory_gib"),
    ("cores_watts = [[0, 10], [4, 50]]", "cores_watts = [[1, 10], [4, 50]]", "machines.m.cores_watts"),
    ("cores_watts = [[0, 10], [4, 50]]", "cores_watts = [[0, 10], [0, 50]]", "machines.m.cores_watts"),
    ("cores_watts = [[0, 10], [4, 50]]", "cores_watts = [[0, 10], [4, -50]]", "machines.m.cores_watts"),
    ("cores_watts = [[0, 10], [4, 50]]", "load_watts = [10]", "machines.m.load_watts"),
    ("cores_watts = [[0, 10], [4, 50]]", "load_watts = [10, nan]", "machines.m.load_watts"),
    ('machine = "m"', 'machine = "unheard-of"', "nodes[0].machine"),
    ('machine = "m"', "", "machine"),
    ("count = 2", "count = 0", "nodes[0].count"),
    ("count = 2", "count = 1_000_001", "nodes[0].count"),
    ("count = 2", "count = 2\ncpu = 0", "nodes[0].cpu"),
    ("count = 2", "count = 2\nmemory_gib = -1", "nodes[0].memory_gib"),
    ("count = 2", "count = 2\ncap_w = 0", "nodes[0].cap_w"),
    ("count = 2", "count = 2\nasleep = true", "nodes[0].asleep"),
    ("count = 2", "count = 2\ndevices = { gpu = 0 }", "nodes[0].devices.gpu"),
    ("count = 2", "count = 2\ncolour = 1", "colour"),
    ("[functions.f]", '[[nodes]]\nmachine = "m"\nname = "n"\ncount = 2\n[functions.f]', "nodes[1].name"),
    ("work_s = 10", "work_s = 0", "functions.f.work_s"),
    ("work_s = 10", "work_s = inf", "functions.f.work_s"),
    ("work_s = 10", "", "functions.f.seconds.m"),
    ("work_s = 10", "work_s = 10\ncpu = -1", "functions.f.cpu"),
    ("work_s = 10", "work_s = 10\ncpu = 2e6", "functions.f.cpu"),
    ("work_s = 10", "work_s = 10\nmemory_mib = -1", "functions.f.memory_mib"),
    ("work_s = 10", "work_s = 10\ndevices = { gpu = 1.5 }", "functions.f.devices.gpu"),
    ("work_s = 10", "work_s = 10\nspread = -0.1", "functions.f.spread"),
    ("work_s = 10", "work_s = 10\nspread = 10.1", "functions.f.spread"),
    ("work_s = 10", "work_s = 10\ncold_start_s = nan", "functions.f.cold_start_s"),
    ("work_s = 10", "work_s = 10\nkeep_alive_s = -1", "functions.f.keep_alive_s"),
    ("work_s = 10", "work_s = 10\npriority = 0.5", "functions.f.priority"),
    ("work_s = 10", "work_s = 10\nenergy_weight = 1.1", "functions.f.energy_weight"),
    ("work_s = 10", "work_s = 10\ndeadline_s = 0", "functions.f.deadline_s"),
    ("work_s = 10", "work_s = 10\ndefer_s = -1", "functions.f.defer_s"),
    ("work_s = 10", "work_s = 10\nretries = -1", "functions.f.retries"),
    ("work_s = 10", "work_s = 10\ninfrastructure_retries = -1", "functions.f.infrastructure_retries"),
    ("work_s = 10", "work_s = 10\ncolour = 1", "functions.f"),
    ("seconds = { m = 5 }", "seconds = { m = 0 }", "functions.g.seconds.m"),
    ("seconds = { m = 5 }", "seconds = { m = 5, unheard-of = 5 }", "functions.g.seconds.unheard-of"),
    ('variants.v = { arch = ["x86_64"] }', "variants.v = { work_s = -1 }", "functions.g.variants.v.work_s"),
    ('kind = "poisson"', 'kind = "daily"', "arrivals[0].kind"),
    ("rate_per_s = 1", "rate_per_s = 0", "arrivals[0].rate_per_s"),
    ("rate_per_s = 1", "", "arrivals[0].rate_per_s"),
    ("count = 5", "", "arrivals[0].count"),
    ("count = 5", "count = 5\nduration_s = 10", "arrivals[0].count"),
    ("count = 5", "count = 5\nwithin_s = 10", "arrivals[0].within_s"),
    ("count = 5", "count = 5\nstart_s = -1", "arrivals[0].start_s"),
    ("functions = { f = 1, g = 2 }", "functions = { f = 1, h = 2 }", "arrivals[0].functions.h"),
    ("functions = { f = 1, g = 2 }", "functions = { f = 1, g = 0 }", "arrivals[0].functions.g"),
    ("functions = { f = 1, g = 2 }", "", "arrivals[0].functions"),
    ('kind = "poisson"\nrate_per_s = 1\ncount = 5', 'kind = "at-once"', "arrivals[0].count"),
    ('kind = "poisson"\nrate_per_s = 1\ncount = 5', 'kind = "at-once"\ncount = 1\nbursts = 2', "arrivals[0].bursts"),
    ('kind = "poisson"\nrate_per_s = 1', 'kind = "bursts"\nbursts = 2', "arrivals[0].every_s"),
    ('kind = "poisson"\nrate_per_s = 1\ncount = 5\nfunctions = { f = 1, g = 2 }', 'kind = "trace"', "arrivals[0].file"),
    ('node = "n-1"', 'node = "n-3"', "faults[0].node"),
    ("at_s = 5", "at_s = -5", "faults[0].at_s"),
    ("at_s = 5", "at_s = 5\nback_after_s = 0", "faults[0].back_after_s"),
]


@pytest.mark.parametrize(("right", "wrong", "field"), WRONG, ids=[f"{w[2]}: {w[1]!r}" for w in WRONG])
def test_a_wrong_field_is_named(right: str, wrong: str, field: str) -> None:
    assert right in GOOD
    with pytest.raises(ScenarioError) as caught:
        trial_of(parse(GOOD.replace(right, wrong, 1), "wrong.toml"), 0)
    assert field in str(caught.value)
    assert "[...]" not in str(caught.value)


SAID = [
    # what is written instead of what, and the error
    ("work_s = 10", "wrok_s = 10", "functions.f.wrok_s: no such field; did you mean `work_s`? (fields: cpu, memory"),
    ("watts = 10", "colour = 1", "scheduler.colour: no such field (fields: seconds_per_proposal, "),
    ('name = "good"', 'name = ""', "name: must not be empty"),
    ('name = "good"', "name = 3", "name: must be text, not 3"),
    ("cores = 4", 'cores = "four"', "machines.m.cores: must be a whole number, not text"),
    ("cores = 4", "cores = 0", "machines.m.cores: must be at least 1, not 0"),
    ("cores = 4", "cores = 2000000", "machines.m.cores: must be at most 100000, not 2000000"),
    ("[[0, 10], [4, 50]]", "[[0]]", "machines.m.cores_watts[0]: must have 2 entries, not 1"),
    ("[[0, 10], [4, 50]]", '[[0, "a"]]', "machines.m.cores_watts[0][1]: must be a number, not text"),
    ("[[0, 10], [4, 50]]", "4", "machines.m.cores_watts: must be a list of pairs, not 4"),
    ("count = 2", 'count = 2\nasleep = "yes"', "nodes[0].asleep: must be true or false, not text"),
    ("count = 2", "count = 2\nlabels = []", "nodes[0].labels: must be a table, not a list"),
    ("count = 2", "count = 2\nlabels = { a = 3 }", "nodes[0].labels.a: must be text, not 3"),
    ("count = 2", 'count = 2\ncpu = "all"', "nodes[0].cpu: must be a number, not text"),
    ("[[nodes]]", "[nodes]", "nodes: must be a list of tables ([[...]]), not a table"),
    ("power_cap_w = 1000", 'sources = "me"', "sources: must be a list of text, not text"),
    ("work_s = 10", "work_s = nan", "functions.f.work_s: must be above 0, not nan"),
    ("work_s = 10", "work_s = 10\nretries = 2024-01-01", "functions.f.retries: must be a whole number, not a date or"),
    ("work_s = 10", "work_s = 10\narch = 3", "functions.f.arch: must be text or a list of text, not 3"),
    ('arch = ["x86_64"] }', "arch = [true] }", "functions.g.variants.v.arch[0]: must be text, not true"),
    ('kind = "poisson"', 'kind = "possion"', "must be at-once, bursts, even, poisson or trace, not 'possion'; did you"),
    ('kind = "poisson"', "kind = 3", "arrivals[0].kind: must be at-once, bursts, even, poisson or trace, not 3"),
    ("at_s = 5", "", "faults[0].at_s: is missing"),
]


@pytest.mark.parametrize(("right", "wrong", "said"), SAID, ids=[s[1] for s in SAID])
def test_errors_are_in_the_files_own_words(right: str, wrong: str, said: str) -> None:
    assert right in GOOD
    with pytest.raises(ScenarioError) as caught:
        parse(GOOD.replace(right, wrong, 1), "wrong.toml")
    assert str(caught.value).startswith("wrong.toml: ")
    assert said in str(caught.value)


def test_an_architecture_can_be_written_without_a_list() -> None:
    alone = GOOD.replace('arch = ["x86_64"] }', 'arch = "x86_64" }').replace(
        "work_s = 10", 'work_s = 10\narch = "x86_64"'
    )
    listed = GOOD.replace("work_s = 10", 'work_s = 10\narch = ["x86_64"]')
    assert trial_of(parse(alone, "alone.toml"), 0) == trial_of(parse(listed, "listed.toml"), 0)
    jsonschema.validate(msgspec.toml.decode(alone), schema())
    part = alone.replace('variants.v = { arch = "x86_64" }', 'variants.v = { arch = "x86_64_v3" }')
    assert trial_of(parse(part, "part.toml"), 0).functions[1].variants[0].seconds == {}, "no part of a name will do"


@pytest.mark.parametrize("table", ["nodes", "arrivals"])
def test_a_missing_table_is_named(table: str) -> None:
    begin = GOOD.index(f"[[{table}]]")
    end = GOOD.index("\n[", begin)
    with pytest.raises(ScenarioError, match=f"wrong.toml: {table}: is missing"):
        parse(GOOD[:begin] + GOOD[end:], "wrong.toml")


def test_what_is_not_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("name = \n")
    with pytest.raises(ScenarioError, match=r"broken\.toml: is not TOML"):
        load_scenario(str(path))


def test_what_is_not_there_names_the_built_in_ones() -> None:
    with pytest.raises(ScenarioError, match="hsc-cpu"):
        load_scenario("no-such-scenario")


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario(str(tmp_path))


def test_traces_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    stream = 'kind = "poisson"\nrate_per_s = 1\ncount = 5\nfunctions = { f = 1, g = 2 }'
    path.write_text(GOOD.replace(stream, 'kind = "trace"\nfile = "work.csv"'))
    (tmp_path / "work.csv").write_text("time_s,function\n3,f\n")
    scenario, folder = load_scenario(str(path))
    assert [one.time for one in trial_of(scenario, 0, folder).arrivals] == [3.0]


def test_a_trace_may_begin_with_a_byte_order_mark_but_must_have_rows(tmp_path: Path) -> None:
    stream = 'kind = "poisson"\nrate_per_s = 1\ncount = 5\nfunctions = { f = 1, g = 2 }'
    scenario = parse(GOOD.replace(stream, 'kind = "trace"\nfile = "work.csv"'), "mine.toml")
    (tmp_path / "work.csv").write_bytes(b"\xef\xbb\xbftime_s,function\r\n3,f\r\n")
    assert [one.time for one in trial_of(scenario, 0, tmp_path).arrivals] == [3.0]
    (tmp_path / "work.csv").write_text("time_s,function\n")
    with pytest.raises(ScenarioError, match=r"arrivals\[0\]\.file: .*work\.csv has no rows"):
        trial_of(scenario, 0, tmp_path)


# -- the schema --------------------------------------------------------------------------------------------------------


def test_the_schema_knows_every_field_and_forbids_the_others() -> None:
    tables = schema()["$defs"]
    for name, table in tables.items():
        if table.get("type") == "object":
            assert table["additionalProperties"] is False, name
    assert set(tables["Scenario"]["properties"]) == set(Scenario.__struct_fields__)
    assert set(tables["Scenario"]["required"]) == {"name", "nodes", "arrivals"}
    assert msgspec.json.decode(msgspec.json.encode(schema())) == schema(), "it is JSON: no infinities"


@pytest.mark.parametrize("name", builtin_names())
def test_the_schema_validates_the_built_in_scenarios(name: str) -> None:
    jsonschema.validate(msgspec.toml.decode(text_of(name)), schema())
