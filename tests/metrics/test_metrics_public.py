"""What the package shows, what it loads, and that nothing public goes untested."""

import ast
import math
import re
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

from culturekit import metrics
from culturekit.core.schemas import SCORES
from culturekit.scores.catalog import CATALOG, FAMILIES
from culturekit.scores.family import scored
from culturekit.scores.listing import family_named

HERE = Path(__file__).parent


def test_every_public_name_is_mentioned_in_a_test() -> None:
    paths = [path for folder in (HERE, HERE.parent / "scores") for path in sorted(folder.rglob("test_*.py"))]
    texts = "\n".join(path.read_text() for path in paths if path.name != Path(__file__).name)
    unmentioned = [name for name in metrics.__all__ if not re.search(rf"\b{name}\b", texts)]
    assert unmentioned == []


def test_every_public_name_loads_and_is_listed() -> None:
    assert sorted(metrics.MODULES) == sorted(metrics.__all__)
    for name in metrics.__all__:
        assert getattr(metrics, name) is not None
        assert name in dir(metrics)


def test_the_stub_says_where_each_name_is() -> None:
    stub = Path(metrics.__file__).with_suffix(".pyi").read_text()
    found = {
        alias.asname: str(node.module)
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert found == {name: resolve_name(f".{module}", metrics.__name__) for name, module in metrics.MODULES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'vendy'"):
        getattr(metrics, "vendy")  # noqa: B009


def test_no_module_stands_in_the_place_of_a_public_name() -> None:
    modules = {path.stem for path in Path(metrics.__file__).parent.iterdir()}
    assert modules & set(metrics.__all__) == set()


def test_importing_loads_neither_scipy_nor_polars() -> None:
    script = (
        "import sys, culturekit.metrics as metrics\n"
        "heavy = lambda: sorted({'scipy', 'polars', 'numpy'} & set(sys.modules))\n"
        "assert heavy() == [], heavy()\n"
        "metrics.vendi([('Asia', 'JP', 'sushi')], weights=(0.5, 0.25, 0.25))\n"
        "metrics.interval, metrics.CATALOG\n"
        "assert heavy() == ['numpy'], heavy()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("metric", ["quality", "qvs", "dialect_score", "dialect_gap"])
def test_what_is_on_the_scale_of_its_scorer_says_no_range(metric: str) -> None:
    assert (CATALOG[metric].low, CATALOG[metric].high) == (-math.inf, math.inf)
    row = {"metric": metric, "model": "m", "benchmark": "b", "params": "{}", "value": 21.3, "n": 1, "unit": "share"}
    assert scored([{name: row.get(name) for name in SCORES.schema}]).scores["value"].to_list() == [21.3]


def test_no_two_metrics_share_a_name() -> None:
    described = {metric for name in FAMILIES for metric in family_named(name).metrics}
    assert {metric.name: metric for metric in described} == dict(metrics.CATALOG)
    assert len(described) == len(metrics.CATALOG)
