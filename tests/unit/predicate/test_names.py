"""Names of columns: what is quoted can be taken apart again, and nothing else is a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.names import backticked, dotted, nearest, split_name

PATHS = st.lists(st.text(st.sampled_from("ab.` \n'é1_"), min_size=1), min_size=1).map(tuple)


@given(PATHS)
def test_path_that_is_written_is_the_path_that_is_read(path: tuple[str, ...]) -> None:
    assert split_name(dotted(path)) == path
    assert split_name(".".join(map(backticked, path))) == path


@given(st.text(st.sampled_from("ab.` ")))
def test_text_is_a_name_or_refused_and_never_half_read(text: str) -> None:
    """A part that is passed over would be another column."""
    path = split_name(text)
    assert path is None or sum(map(len, path)) + len(path) - 1 <= len(text)
    assert path is None or split_name(dotted(path)) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "`a", "a`", "`a`b", "a`b`", "``", "`a``", "`a`.", "``.a"]
)
def test_text_that_is_no_name_is_none(text: str) -> None:
    assert split_name(text) is None


def test_nearest_names_come_likeliest_first_whatever_their_case() -> None:
    known = {"Customer_ID": "1", "customers": "2", "amount": "3"}
    assert nearest("customer_i", known) == ("1", "2")
    assert nearest("zzz", known) == ()
