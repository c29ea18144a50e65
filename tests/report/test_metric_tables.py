"""The tables of the metrics that a recipe names."""

from pathlib import Path

import pytest

from culturekit.report import metric_tables
from culturekit.report.run_folders import RunFolders


def test_a_run_that_names_no_metric_looks_for_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_for() -> None:
        raise AssertionError("packages were looked for")

    monkeypatch.setattr(metric_tables, "all_metrics", looked_for)
    assert list(metric_tables.metric_tables(RunFolders(tmp_path, ()))) == []
