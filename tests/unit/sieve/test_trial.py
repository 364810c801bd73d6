"""Trials that grow: what was added comes back, whatever came after it."""

import numpy as np

from tamis.sieve.trial import Trial, Trials


def test_trials_are_taken_from_wherever_they_were_added() -> None:
    trials, rows = Trials(), []
    for size in (0, 1, 3, 2, 40, 1):
        more = [(n % 2 == 0, n % 3 == 0, len(rows) + n) for n in range(size)]
        trials.add(Trial.of(more))
        rows += more
        assert len(trials) == len(rows)
        places = np.arange(len(rows))[::-1]
        found = trials.take(places)
        assert found.possible.tolist() == [one[0] for one in reversed(rows)]
        assert found.certain.tolist() == [one[1] for one in reversed(rows)]
        assert found.decider.tolist() == [one[2] for one in reversed(rows)]
