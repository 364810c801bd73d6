"""Notes are told once each, and not without end."""

from tamis.sieve.notes import MAX_NOTES, Notes


def test_note_is_told_once() -> None:
    notes = Notes()
    for _ in range(3):
        notes.add("a")
    notes.add("b")
    assert notes.to_list() == ["a", "b"]


def test_first_few_are_kept_and_the_rest_is_counted() -> None:
    notes = Notes(limit=2)
    for text in "abcd":
        notes.add(text)
    assert notes.to_list() == ["a", "b", "and 2 more"]


def test_note_that_is_kept_is_not_counted_as_left_out() -> None:
    notes = Notes(limit=1)
    for text in ("a", "b", "a", "a"):
        notes.add(text)
    assert notes.to_list() == ["a", "and 1 more"]


def test_there_are_no_notes_at_first_and_a_bound_in_the_end() -> None:
    notes = Notes()
    assert notes.to_list() == []
    for number in range(10_000):
        notes.add(f"partition {number}")
    assert len(notes.to_list()) == MAX_NOTES + 1
