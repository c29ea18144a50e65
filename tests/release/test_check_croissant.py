"""Whatever stands in croissant.json, the check says so and does not fall over."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.release.card_build import card_stage, json_findings
from culturekit.release.card_facts import facts_of
from culturekit.release.card_hand import read_hand
from culturekit.release.croissant import CROISSANT, croissant_of
from tests.effort import SHARED_FIXTURE, examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every container with a key or index that something else can be put at."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


@settings(suppress_health_check=SHARED_FIXTURE, max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_any_other_value_anywhere_is_a_finding(one_card: Path, data: st.DataObject) -> None:
    expected = orjson.loads(orjson.dumps(croissant_of(read_hand(one_card / "hand"), facts_of(one_card))))
    described = orjson.loads(orjson.dumps(expected))
    node, key = data.draw(st.sampled_from(places(described)))
    before = node[key]
    node[key] = data.draw(JSON)
    found = list(json_findings(CROISSANT, expected, described))
    assert bool(found) == (orjson.dumps(node[key]) != orjson.dumps(before))


def test_types_are_those_of_the_tables(one_card: Path) -> None:
    described = orjson.loads((one_card / "croissant.json").read_bytes())
    fields = {field["name"]: field for field in described["recordSet"][0]["field"]}
    schema = pl.read_parquet_schema(one_card / "data/cspace/cuisine.parquet")
    assert list(fields) == list(schema)
    assert fields["popularity"]["dataType"] == "cr:Float64"
    assert (fields["path"]["dataType"], fields["path"]["isArray"]) == ("sc:Text", True)
    assert described["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert described["rai:dataCollectionTimeFrame"] == ["2026-11-02"]


def test_a_card_can_be_planned_before_its_release_is_there(tmp_path: Path) -> None:
    stage = card_stage(tmp_path / "later", tmp_path / "hand")
    assert set(stage.inputs) == {"release", "fields", "text", "stages"}
