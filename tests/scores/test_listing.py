"""The list of families: what each says of itself holds."""

import inspect
from pathlib import Path

import pytest

from culturekit.core.declared import dataclasses_of, declared, options_in
from culturekit.metrics import CATALOG
from culturekit.scores.family import Family
from culturekit.scores.listing import FAMILIES, all_metrics, family_named
from culturekit.scores.named_in_recipe import bound_stage


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


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_option_of_a_family_says_what_it_is(name: str) -> None:
    family: Family = family_named(name)
    assert inspect.getdoc(family.stage)
    reads, *options = dataclasses_of(family)
    assert any(each.help for each in declared(reads))
    assert all(each.help.endswith((".", "]")) for cls in (reads, *options) for each in declared(cls) if each.help)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_what_an_option_needs_is_another_option_of_its_command(name: str) -> None:
    options = list(options_in(*dataclasses_of(family_named(name))))
    names = {each.option.replace("_", "-") for each in options}
    assert all(
        {one.partition("=")[0] for one in each.typed.needs.split()} & names for each in options if each.typed.needs
    )


def test_our_metrics_are_those_of_the_catalogue() -> None:
    assert dict(all_metrics()) == dict(CATALOG)
