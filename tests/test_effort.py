import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import THOROUGH


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
