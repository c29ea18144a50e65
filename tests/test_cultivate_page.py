"""The pages about activities and descriptors, typed."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.run import run_stage
from culturekit.recipes.cultivate.world import simulated_pages_stage
from tests.command_line import culturekit
from tests.typed_pages import ROOT, typed

CULTIVATE, DESCRIPTORS = (ROOT / "docs" / name for name in ("cultivate.md", "descriptors.md"))


def test_each_setting_of_the_page_can_be_set() -> None:
    settings = re.findall(
        r"`(?:--set )?((?:scores|ground)\.[\w.]+)(?:=|: )([^`]+)`", CULTIVATE.read_text(encoding="utf-8")
    )
    assert {key for key, _ in settings} == {"scores.tau", "scores.quantile", "scores.aggregate", "scores.reduce"}
    for key, value in settings:
        more = ["scores.tau=null"] if key == "scores.quantile" else []
        load_any_recipe(find_recipe("cultivate"), [*more, f"{key}={value}"])


@pytest.mark.slow
def test_pages_become_descriptors_as_the_page_says(tmp_path: Path) -> None:
    """The simulated model answers in place of the paid ones."""
    stage = simulated_pages_stage(countries=("IR",))
    with LocalEngine(1) as engine:
        run_stage(stage, tmp_path / "written", engine=engine)
    for file in (tmp_path / "written").iterdir():
        (tmp_path / file.name).symlink_to(file)
    token = [{"token": "samovar", "style": "traditional", "necessity": "necessary"}]
    layout = {"eating": {"eating at home": {"setting": [], "objects": token}}}
    (tmp_path / "iran.json").write_text(json.dumps(layout, indent=1), encoding="utf-8")
    for words in typed(DESCRIPTORS):
        culturekit(*(re.sub("^openai:.*", "simulated", word) for word in words), cwd=tmp_path, ends=0)
    assert pl.read_parquet(tmp_path / "prompts/prompts.parquet").height == 36
    assert pl.read_parquet(tmp_path / "stereotypes/stereotypes.parquet").height > 0
    assert pl.read_parquet(tmp_path / "published/descriptors.parquet")["token"].to_list() == ["samovar"]
    assert list(json.loads((tmp_path / "files/iran.json").read_text(encoding="utf-8"))) == sorted(
        {row["concept"] for row in pl.read_parquet(tmp_path / "prompts/prompts.parquet").to_dicts()}
    )
