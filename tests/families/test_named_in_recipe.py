"""A family that a recipe names: what is stated of it reaches the stage."""

from pathlib import Path

from culturekit.families.named_in_recipe import bound_stage


def test_options_of_a_group_reach_the_stage() -> None:
    tables = {"images": {"images-a": Path("a")}, "quality": {"quality-a": Path("b")}}
    stated = {"by": [["country"]], "groups": {"FR": "West"}, "target": "these", "denominator": "valid"}
    options = bound_stage("questions", stated, tables, seed=1).options
    assert options["denominator"] == "valid"
    means = options["means"]
    assert isinstance(means, dict)
    assert {name: means[name] for name in ("by", "groups", "target", "benchmark")} == {
        "by": (("country",),), "groups": {"FR": "West"}, "target": "these", "benchmark": "questions",
    }  # fmt: skip
