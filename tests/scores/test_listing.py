"""The list of families: what each says of itself holds."""

import inspect
from pathlib import Path

import pytest

from culturekit.core.declared import declared, inputs_of, is_group, options_in, settings_of
from culturekit.metrics import CATALOG
from culturekit.scores.catalog import FAMILIES
from culturekit.scores.family import Family
from culturekit.scores.listing import all_metrics, family_named
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
    reads, settings = inputs_of(family.stage), settings_of(family.stage)
    assert any(each.help for each in reads)
    inside = [each for group in settings if is_group(group) for each in declared(group.kind)]
    assert all(each.help.endswith((".", "]")) for each in (*reads, *settings, *inside) if each.help)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_what_an_option_needs_is_another_option_of_its_command(name: str) -> None:
    options = list(options_in(family_named(name).stage))
    names = {each.option.replace("_", "-") for each in options}
    assert all(
        {one.partition("=")[0] for one in each.typed.needs.split()} & names for each in options if each.typed.needs
    )


def test_our_metrics_are_those_of_the_catalogue() -> None:
    assert dict(all_metrics()) == dict(CATALOG)
