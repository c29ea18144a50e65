"""Messages of errors, numbers with what they count, and examples that are the same in every run."""

import pickle
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core import errors
from culturekit.core.errors import (
    ConfigError,
    CultureKitError,
    IntegrityError,
    Problem,
    UsageError,
    counted,
    counted_reason,
)
from tests.effort import THOROUGH


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


@pytest.mark.parametrize(("many", "one"), [
    ("images", "image"), ("countries", "country"), ("matches", "match"), ("classes", "class"), ("boxes", "box"),
    ("rows set aside", "row set aside"), ("true labels worked out", "true label worked out"),
    ("image of other prompts", "image of other prompts"), ("image has no size", "image has no size"),
    ("quality", "quality"), ("ids", "id"), ("waits for review", "waits for review"), ("analysis", "analysis"),
])  # fmt: skip
def test_one_of_a_thing_is_in_the_singular(many: str, one: str) -> None:
    assert counted(1, many) == f"1 {one}"
    assert counted(0, many) == f"0 {many}"
    assert counted(1_002, many) == f"1,002 {many}"


@pytest.mark.parametrize(("count", "reason", "said"), [
    (4_186, "image without a picture", "4,186 × image without a picture"),
    (198, "country out of scope", "198 × country out of scope"),
    (2, "waits for review", "2 × waits for review"),
    (1, "image without a picture", "1 image without a picture"),
    (2, "images without a text", "2 images without a text"),
    (1, "images without a text", "1 image without a text"),
])  # fmt: skip
def test_a_reason_that_is_said_of_each_is_not_counted_as_if_it_were_of_many(count: int, reason: str, said: str) -> None:
    assert counted_reason(count, reason) == said


@pytest.mark.skipif(THOROUGH, reason="a thorough run draws new examples")
def test_examples_do_not_depend_on_the_modules_that_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "more_constants.py"
        file.write_text(f"NUMBERS = {list(range(10**9, 10**9 + 300))}", encoding="utf-8")
        spec = spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, file.stem, module)
        assert drawn() == before


def drawn() -> list[int]:
    numbers: list[int] = []

    @settings(max_examples=200)
    @given(st.integers())
    def noted(number: int) -> None:
        numbers.append(number)

    noted()
    return numbers
