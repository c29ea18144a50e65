import pickle

import pytest

from culturekit.core import errors
from culturekit.core.errors import ConfigError, CultureKitError, IntegrityError, Problem, UsageError


def test_a_message_says_where_what_expected_found_and_what_next() -> None:
    error = UsageError("wrong shape", where="a.npy", expected="two axes", found="three", hint="Reshape it.")
    assert str(error) == "a.npy: wrong shape; expected two axes, found three. Reshape it."
    assert str(UsageError("wrong")) == "wrong"
    assert str(UsageError("wrong", found="3")) == "wrong; found 3"


def test_problems_stand_in_file_order() -> None:
    error = ConfigError([Problem("second", "a.yaml", 9), Problem("first", "a.yaml", 2, "x.y")])
    assert str(error) == "a.yaml:2: x.y: first\na.yaml:9: second"


@pytest.mark.parametrize("error", [
    IntegrityError("cut", where="dump", found="byte 3"), ConfigError([Problem("m", "w", 1, "k")]),
])  # fmt: skip
def test_errors_cross_process_borders_whole(error: CultureKitError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_exit_codes_are_the_documented_ones() -> None:
    codes = {name: error.exit_code for name, error in vars(errors).items() if hasattr(error, "exit_code")}
    assert codes == {
        "BudgetReached": 5, "ConfigError": 2, "CultureKitError": 70, "FolderInUse": 2, "IntegrityError": 4,
        "MissingDependency": 2, "NothingScored": 2, "PluginFailure": 2, "UnusableReplies": 3, "UpstreamUnavailable": 3,
        "UsageError": 2,
    }  # fmt: skip
    assert errors.__doc__ is not None
    for name in codes:
        assert name in errors.__doc__
