from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import IMAGES
from culturekit.generation.comparability import traits_of
from culturekit.report import differences as metric_tables
from culturekit.report.provenance import Making, facts, lines_of
from culturekit.report.run_folders import RunFolders


def test_a_run_that_names_no_metric_looks_for_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_for() -> None:
        raise AssertionError("packages were looked for")

    monkeypatch.setattr(metric_tables, "all_metrics", looked_for)
    assert list(metric_tables.metric_tables(RunFolders(tmp_path, ()))) == []


def marked(*rows: dict[str, object]) -> dict[str, str]:
    plain = {
        "image_id": "i", "path": "x", "model": "m", "rewriter": "off", "provider_params": "{}", "sha256": "",
        "width": 8, "height": 8, "status": "ok", "seed_honoured": True,
    }  # fmt: skip
    table = pl.DataFrame([plain | row for row in rows], schema=IMAGES.schema)
    return facts(table, traits_of(table))


def test_what_is_alike_is_not_marked_and_what_nobody_has_is_left_away() -> None:
    lines = {line.what: line for line in lines_of([marked({}), marked({}, {})])}
    assert set(lines) == {"prompts rewritten", "seeds honoured", "sizes in pixels"}
    assert not any(line.apart for line in lines.values())
    assert not Making(("a", "b"), ("folder", "folder"), ((), ()), tuple(lines.values())).apart


def test_each_difference_is_marked_and_failures_are_only_told() -> None:
    day, later = (datetime(2026, 11, number, tzinfo=UTC) for number in (2, 20))
    bought = marked(
        {"rewriter": "on", "seed_honoured": False, "width": 16, "requested_at": day},
        {"rewriter": "unknown", "seed_honoured": False, "requested_at": later},
        {"status": "filtered", "provider_params": '{"negative_text":"not sent: the API takes none"}'},
    )
    lines = {line.what: line for line in lines_of([marked({}), bought])}
    assert lines["prompts rewritten"].cells == ("no", "yes (1), not known (1)")
    assert lines["sizes in pixels"].cells == ("8x8", "16x8 (1), 8x8 (1)")
    assert lines["negative prompts without effect"].cells == ("", "1")
    assert lines["images that were not made"].cells == ("", "1 filtered")
    assert lines["asked"].cells == ("", "2026-11-02 to 2026-11-20")
    apart = {what for what, line in lines.items() if line.apart}
    assert apart == {
        "prompts rewritten", "seeds honoured", "sizes in pixels", "negative prompts without effect",
    }  # fmt: skip
