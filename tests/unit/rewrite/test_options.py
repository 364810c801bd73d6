"""Options of a rewrite: Iceberg's names in any spelling, all faults at once, the nearest name for a wrong one."""

import re
from pathlib import Path

import pytest

from tamis.cli.rewrite_options import REWRITE_OPTIONS
from tamis.errors import OptionError
from tamis.formats.delta.rewriting import REFUSED, WORDS
from tamis.rewrite.options import INT_MAX, LONG_MAX, OPTIONS, parse_options
from tamis.rewrite.terms import RewriteTerms

MB = 1 << 20
ICEBERG = RewriteTerms("Iceberg", 512 * MB, (0, 1, 2), 1)
DELTA = RewriteTerms("Delta", 1 << 30, words=WORDS, refused=REFUSED)


def test_defaults_are_those_of_iceberg_s_action() -> None:
    options = parse_options({}, ICEBERG)
    assert options.to_dict() == {
        "target-file-size-bytes": 512 * MB,
        "min-file-size-bytes": 384 * MB,
        "max-file-size-bytes": int(1.8 * 512 * MB),
        "min-input-files": 5,
        "delete-file-threshold": INT_MAX,
        "delete-ratio-threshold": 0.3,
        "rewrite-all": False,
        "max-file-group-size-bytes": 100 << 30,
        "max-file-group-input-files": LONG_MAX,
        "max-concurrent-file-group-rewrites": 5,
        "max-files-to-rewrite": None,
        "partial-progress.enabled": False,
        "partial-progress.max-commits": 10,
        "partial-progress.max-failed-commits": 10,
        "rewrite-job-order": "none",
        "output-spec-id": 1,
        "only-old-specs": False,
        "remove-dangling-deletes": False,
        "use-starting-sequence-number": True,
        "strategy": "binpack",
        "compression-factor": 1.0,
        "shuffle-partitions-per-file": 1,
        "max-output-size": INT_MAX,
        "var-length-contribution": 8,
    }


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_taken_with_dashes_and_with_underscores(option) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - an Option
    value = {"only-old-specs": True, "strategy": "zorder"}.get(option.name)
    value = getattr(parse_options({}, ICEBERG), option.field) if value is None else value
    if value is None:
        value = 7
    spellings = {option.name, option.field, option.name.replace(".", "-")}
    read = {getattr(parse_options({name: value}, ICEBERG), option.field) for name in spellings}
    assert read == {value}


def test_sizes_are_taken_with_units_of_1024() -> None:
    options = parse_options({"target-file-size-bytes": "256MB", "max_file_group_size_bytes": "2 GiB"}, ICEBERG)
    assert (options.target_file_size_bytes, options.max_file_group_size_bytes) == (256 * MB, 2 << 30)
    assert options.min_file_size_bytes == 192 * MB


def test_text_is_taken_for_numbers_and_flags_as_spark_gives_it() -> None:
    given = {"min-input-files": "3", "rewrite-all": "TRUE", "delete-ratio-threshold": "0.5"}
    options = parse_options(given, ICEBERG)
    assert (options.min_input_files, options.rewrite_all, options.delete_ratio_threshold) == (3, True, 0.5)


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(OptionError, match="nearest") as raised:
        parse_options({"target_file_size": "1MB"}, ICEBERG)
    assert raised.value.nearest[0] == "target-file-size-bytes"
    assert raised.value.options == ("target_file_size",)


def test_all_faults_are_told_together() -> None:
    """Whoever has three wrong options should not learn of them one after the other."""
    given = {"min-input-files": 0, "delete-ratio-threshold": 2, "rewrite-job-order": "bytes", "nonsense": 1}
    with pytest.raises(OptionError) as raised:
        parse_options(given, ICEBERG)
    assert set(raised.value.options) == set(given)
    assert all(name in str(raised.value) for name in given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"target-file-size-bytes": 0}, "1 or more"),
        ({"target-file-size-bytes": "10MB", "min-file-size-bytes": "10MB"}, "not less than target"),
        ({"target-file-size-bytes": "10MB", "max-file-size-bytes": "10MB"}, "not more than target"),
        ({"min-file-size-bytes": -1}, "0 or more"),
        ({"min-input-files": 0}, "1 or more"),
        ({"min-input-files": 2.5}, "whole number"),
        ({"min-input-files": True}, "whole number"),
        ({"delete-file-threshold": -1}, "0 or more"),
        ({"delete-ratio-threshold": 0}, "above 0"),
        ({"delete-ratio-threshold": 1.01}, "at most 1"),
        ({"delete-ratio-threshold": "nan"}, "give a number"),
        ({"max-file-group-size-bytes": 0}, "1 or more"),
        ({"max-file-group-size-bytes": "5 parsecs"}, "512MB"),
        ({"max-file-group-input-files": 0}, "1 or more"),
        ({"max-concurrent-file-group-rewrites": 0}, "1 or more"),
        ({"max-files-to-rewrite": 0}, "1 or more"),
        ({"max-files-to-rewrite": 1 << 64}, "at most"),
        ({"partial-progress.max-commits": 0}, "1 or more"),
        ({"rewrite-job-order": "size"}, "bytes-asc"),
        ({"rewrite-all": "yes"}, "true or false"),
        ({"output-spec-id": 9}, "no partition spec 9"),
        ({"rewrite-all": True, "only-old-specs": True}, "give one of them"),
        ({"compression-factor": 2.0}, "needs strategy=sort"),
        ({"strategy": "sort", "var-length-contribution": 9}, "needs strategy=zorder"),
        ({"strategy": "sort", "compression-factor": 0}, "not above 0"),
        ({"min-input-files": 2, "min_input_files": 3}, "is given as min-input-files too"),
    ],
)
def test_value_out_of_its_rule_is_refused(given: dict[str, object], reason: str) -> None:
    with pytest.raises(OptionError, match=re.escape(reason)):
        parse_options(given, ICEBERG)


def test_more_commits_may_fail_than_there_are() -> None:
    """As Iceberg's action has it: then no number of them ends the run."""
    found = parse_options({"partial-progress.max-commits": 2, "partial-progress.max-failed-commits": 3}, ICEBERG)
    assert (found.partial_progress_max_commits, found.partial_progress_max_failed_commits) == (2, 3)


def test_option_as_keyword_and_in_options_is_given_twice() -> None:
    """Which of the two is meant is not to be guessed, also where both are spelt alike."""
    for name in ("rewrite_all", "rewrite-all"):
        with pytest.raises(OptionError, match="rewrite_all: it is given"):
            parse_options({name: True}, ICEBERG, {"rewrite_all": False})


def test_name_that_is_no_text_is_refused_as_others_are() -> None:
    with pytest.raises(OptionError, match="5: an option's name is a text"):
        parse_options({5: 1}, ICEBERG)  # type: ignore[dict-item] # as a user may


def test_none_is_not_given() -> None:
    assert parse_options({"min-input-files": None, "nonsense": None}, ICEBERG) == parse_options({}, ICEBERG)


def test_delta_s_words_mean_their_equals() -> None:
    given = {
        "spark.databricks.delta.optimize.maxFileSize": "256MB",
        "minFileSize": "64MB",
        "maxDeletedRowsRatio": 0.05,
    }
    options = parse_options(given, DELTA)
    assert (options.target_file_size_bytes, options.min_file_size_bytes) == (256 * MB, 64 * MB)
    assert options.delete_ratio_threshold == 0.05


@pytest.mark.parametrize("name", [*REFUSED])
def test_what_delta_has_no_equal_for_is_refused_by_name(name: str) -> None:
    with pytest.raises(OptionError, match=re.escape(name)) as raised:
        parse_options({name: 1}, DELTA)
    assert raised.value.options == (name,)
    assert "Delta table" in str(raised.value)


def test_a_word_of_one_format_is_none_of_another() -> None:
    with pytest.raises(OptionError, match="there is no such option"):
        parse_options({"maxDeletedRowsRatio": 0.1}, ICEBERG)


def test_command_line_has_every_option() -> None:
    assert list(REWRITE_OPTIONS) == [option.name for option in OPTIONS]
    assert {name for name, (metavar, _) in REWRITE_OPTIONS.items() if metavar is None} == {
        "rewrite-all",
        "partial-progress.enabled",
        "only-old-specs",
        "remove-dangling-deletes",
    }


def test_reference_has_every_option() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "rewrite-options.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE) == [option.name for option in OPTIONS]
