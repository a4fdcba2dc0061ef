"""What is told again is counted, what is told anew is written, and no letter too many."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from wattloom.kubernetes.client.event_aggregator import EventAggregator, Line, Pod, Series, clipped

POD = Pod("space", "web", "uid-1")
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def _repeat(book: EventAggregator, note: str, clock: float) -> None:
    now = NOW + timedelta(seconds=clock)
    book.repeat(POD, "FailedScheduling", note, "Warning", "Scheduling", now, 1000 + clock)


def _written(book: EventAggregator, clock: float) -> Line:
    line = book.take(1000 + clock)
    assert line is not None
    book.name(line)
    line.written_note, line.written_count, line.written_at = line.note, line.count, 1000 + clock
    book.done(line)
    return line


def test_the_same_words_are_counted_on_one_event_and_written_now_and_then() -> None:
    book = EventAggregator("wattloom", "one", repeat_s=10)
    _repeat(book, "no room", 0)
    first = _written(book, 0)
    for clock in range(1, 10):
        _repeat(book, "no room", clock)
    assert book.take(2000.0) is None
    _repeat(book, "no room", 10)
    line = _written(book, 10)
    assert line is first
    assert book.series(line) == Series(11, "2026-11-16T12:00:10.000000Z")


def test_other_words_are_another_event_of_another_name() -> None:
    book = EventAggregator("wattloom", "one", repeat_s=0)
    _repeat(book, "no room", 0)
    name = _written(book, 0).event
    _repeat(book, "no watts", 1)
    line = _written(book, 1)
    assert line.event != name
    assert (line.note, line.count) == ("no watts", 1)


def test_words_told_in_haste_are_written_when_they_are_due_and_the_last_ones_count() -> None:
    book = EventAggregator("wattloom", "one", repeat_s=10)
    _repeat(book, "a", 0)
    _written(book, 0)
    _repeat(book, "b", 1)
    _repeat(book, "c", 2)
    assert book.late(1005) == 1
    assert book.take(2000.0) is None
    book.late(1011)
    assert _written(book, 11).note == "c"
    assert book.late(1012) == 0


def test_a_line_that_is_being_written_is_not_written_by_a_second_writer() -> None:
    book = EventAggregator("wattloom", "one", repeat_s=0)
    _repeat(book, "no room", 0)
    line = book.take(2000.0)
    assert line is not None
    _repeat(book, "no room", 1)
    assert book.late(1001, all=True) == 1
    assert book.take(2000.0) is None
    book.done(line)
    book.late(1001, all=True)
    assert book.take(2000.0) is line


def test_a_pod_that_is_placed_has_its_last_refusals_written_first() -> None:
    book = EventAggregator("wattloom", "one", repeat_s=100)
    _repeat(book, "no room", 0)
    _written(book, 0)
    _repeat(book, "no room", 1)
    book.tell(POD, "Scheduled", "on n1", "Normal", "Binding", NOW, 1002.0)
    first, second = book.take(2000.0), book.take(2000.0)
    assert first is not None
    assert second is not None
    assert [(first.reason, first.count), (second.reason, second.count)] == [("FailedScheduling", 2), ("Scheduled", 1)]


def test_a_series_that_was_long_silent_begins_anew_and_nothing_is_kept_for_ever() -> None:
    book = EventAggregator("wattloom", "one")
    _repeat(book, "no room", 0)
    first = _written(book, 0)
    _repeat(book, "no room", 500)
    again = _written(book, 500)
    assert again is not first
    assert again.count == 1
    book.late(2000)
    assert not book._repeating


def test_one_pod_is_written_of_no_more_often_than_client_go_would() -> None:
    """25 at once, then one more every five minutes, however often its reason changes."""
    book = EventAggregator("wattloom", "one", repeat_s=0)
    written = []
    for second in range(3600):
        _repeat(book, f"reason {second}", second)
        book.late(1000 + second)
        if book.take(1000 + second) is not None:
            written.append(second)
            (line,) = book._repeating.values()
            line.written_note, line.written_count, line.written_at = line.note, line.count, 1000 + second
            book.done(line)
    assert written[:25] == list(range(25))
    assert len(written) in (25 + 11, 25 + 12)
    assert all(later - sooner >= 299 for sooner, later in pairwise(written[25:]))


def test_pods_that_wait_have_a_budget_and_are_in_nobodys_way() -> None:
    book = EventAggregator("wattloom", "one")
    for number in range(10_000):
        pod = Pod("space", f"p{number}", f"u{number}")
        book.repeat(pod, "FailedScheduling", "no room", "Warning", "Scheduling", NOW, 1000.0)
    book.tell(POD, "Scheduled", "on n1", "Normal", "Binding", NOW, 1000.0)
    first = book.take(1000.0)
    assert first is not None
    assert first.reason == "Scheduled"
    written = sum(book.take(1000.0 + tick / 10) is not None for tick in range(100) for _ in range(1000))
    assert 590 <= written <= 600  # a hundred at once, and fifty more in each of ten seconds
    assert len(book) == 10_000 - written


def test_a_note_is_cut_between_letters_to_what_the_server_takes() -> None:
    assert clipped("short") == "short"
    cut = clipped("ä" * 600)
    assert len(cut.encode()) <= 1024
    assert cut.endswith("ä…")
