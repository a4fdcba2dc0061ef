import numpy as np
import pytest

from wattloom.errors import InputError
from wattloom.machines.power_from_cpu import FEWEST, PowerFromCpu, blocks, fit_curve, read_samples

LOT = np.random.default_rng(3)


def recorded(count: int = 600, noise: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Steps of load on a machine whose draw is concave: 100 W idle, 300 W with 16 cores busy."""
    cores = np.repeat(LOT.uniform(0.0, 16.0, count // 6), 6)
    return cores, 100.0 + 200.0 * (cores / 16.0) ** 0.6 + LOT.normal(0.0, noise, count)


def test_a_curve_is_learned_that_never_falls_and_says_how_far_it_is_off() -> None:
    cores, watts = recorded()
    found = fit_curve(cores, watts)
    true = 100.0 + 200.0 * (np.array(found.cores) / 16.0) ** 0.6
    assert np.all(np.diff(found.watts) >= 0.0)
    assert np.abs(np.array(found.watts) - true)[1:].max() < 12.0
    assert 1.0 < found.mean_error_w < 8.0
    assert found.nearest_error_w < 4.0
    assert found.samples == len(watts)


def test_the_nearest_situations_tell_what_a_curve_cannot() -> None:
    """The first interval after a change still shows the power from before: the meter lags."""
    cores, watts = recorded(noise=0.5)
    late = np.concatenate([watts[:1], watts[:-1]])
    test, learned = blocks(len(cores), 2)
    told = PowerFromCpu(cores, late, learned=learned).watts(cores)
    line = np.interp(cores, np.sort(cores), np.sort(late))
    assert np.abs(told - late)[test].mean() < 0.6 * np.abs(line - late)[test].mean()


def test_a_tested_stretch_and_its_neighbours_are_not_learned_from() -> None:
    test, learned = blocks(100, 1)
    assert list(np.flatnonzero(test)) == list(range(20, 40))
    assert not learned[10:50].any()
    assert learned[:10].all()
    assert learned[50:].all()


@pytest.mark.parametrize(
    ("cores", "watts", "words"),
    [
        (np.ones(FEWEST - 1), np.ones(FEWEST - 1), "too few"),
        (np.zeros(FEWEST), np.ones(FEWEST), "never busy"),
        (np.ones(FEWEST), np.zeros(FEWEST), "above 0"),
        (-np.ones(FEWEST), np.ones(FEWEST), "must not be negative"),
    ],
)
def test_runs_that_teach_nothing_are_refused(cores: np.ndarray, watts: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fit_curve(cores, watts)


def test_samples_are_read_in_order_of_time() -> None:
    cores, watts = read_samples("time_s,cpu_cores,watts\n3,2,150\n0,1,120\n", "run.csv")
    assert (cores.tolist(), watts.tolist()) == ([1.0, 2.0], [120.0, 150.0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time_s,watts\n0,1\n", "missing: cpu_cores"),
        ("", "missing: time_s"),
        ("time_s,cpu_cores,watts\n0,x,1\n", "line 2: must be three numbers"),
        ("time_s,cpu_cores,watts\n0,1\n", "line 2: must be three numbers"),
    ],
)
def test_files_that_are_not_samples_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_samples(text, "run.csv")
