"""Schemes: the shipped ones, and mistakes in those of others."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from culturekit.builders.asking import wording
from culturekit.cli.app import app
from culturekit.core.choices import MONK_SWATCHES
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.package_data import shipped
from culturekit.people.answers import answer_mistakes
from culturekit.people.scheme import Scheme, fixed_options, load_scheme, scheme_names
from culturekit.people.tasks import template

OF_THE_DESIGN = {
    "audit", "c3_captions", "c3_images", "cube", "cultivate", "inclusion_survey", "inclusion_task1", "inclusion_task2",
    "linguistic", "linguistic_dialect",
}  # fmt: skip


def test_every_scheme_of_the_design_is_there_and_an_unknown_one_lists_them() -> None:
    assert set(scheme_names()) == OF_THE_DESIGN
    with pytest.raises(UsageError, match="cultivate"):
        load_scheme("cubes")


@pytest.mark.parametrize("name", sorted(OF_THE_DESIGN))
def test_a_template_has_a_tag_for_every_question(name: str) -> None:
    scheme = load_scheme(name)
    root = ElementTree.fromstring(template(scheme))
    names = [tag.get("name") for tag in root.iter() if tag.get("name")]
    assert len(names) == len(set(names)), "Label Studio wants each name once"
    for criterion in scheme.criteria:
        tag = next(tag for tag in root.iter() if tag.get("name") == criterion.name)
        assert tag.get("toName") in names
        if criterion.options_from is None and criterion.type != "text":
            assert {choice.get("value") for choice in tag} >= set(criterion.fixed_values)
    for tag in root.iter():
        if tag.get("whenTagName"):
            assert tag.get("whenTagName") in names


@pytest.mark.parametrize("name", sorted(OF_THE_DESIGN))
def test_who_follows_an_attention_check_makes_no_mistake(name: str) -> None:
    scheme = load_scheme(name)
    for check in scheme.checks:
        answers = {question: (value,) for question, value in check.answers.items()}
        mistakes = [mistake for mistake in answer_mistakes(scheme, answers, {}, {}) if "_comment" not in mistake.field]
        assert mistakes == []


def test_cube_asks_faithfulness_on_yes_or_maybe_only() -> None:
    cube = load_scheme("cube")
    assert [criterion.name for criterion in cube.criteria] == ["belongs", "faithfulness", "realism"]
    assert cube.criterion("belongs").fixed_values == ("yes", "no", "maybe")
    assert cube.criterion("faithfulness").when == {"belongs": ("yes", "maybe")}
    assert cube.criterion("faithfulness").shows == ("prompt",), "the first question is about the picture alone"
    comment = cube.criterion("realism").comment
    assert comment is not None
    assert comment.when == ("1", "2", "3")


def test_the_schema_that_editors_read_is_that_of_the_code() -> None:
    done = CliRunner().invoke(app, ["config", "schema", "annotation"])
    assert json.loads(done.stdout) == json.loads(shipped("people/scheme.schema.json").read_text(encoding="utf-8"))


GOOD = """
name: own
title: Own
guidelines: [Look.]
criteria:
  - name: good
    question: Is it good?
    type: scale
    low: 1
    high: 5
"""

BAD = {
    "title: Own": ("titel: Own", "title"),
    "type: scale": ("type: stars", "scale"),
    "low: 1": ("low: 7", "low below high"),
    "name: good": ("name: Good", "name"),
    "question: Is it good?": ("question: Is it $good?", "may not hold $"),
    "    high: 5": ("    high: 5\n    when: {other: [a]}", "other is not an earlier question"),
    "guidelines: [Look.]": ("guidelines: [Look.]\nchecks: [{say: Do., answers: {good: 9}}]", "good has no answer 9"),
    "title: ": ("drawn: [image]\ntitle: ", "one picture has no place to be drawn"),
    "criteria:": ("fields: {task: x}\ncriteria:", "forms use themselves"),
    "    high: 5\n": ("    high: 5\n    levels: [bad, good]\n", "levels: one for each step"),
    "  - name: good\n": ("  - name: good\n    open: true\n", "open: only a list"),
}


@pytest.mark.parametrize("right", BAD)
def test_a_mistake_in_a_scheme_is_named(tmp_path: Path, right: str) -> None:
    wrong, said = BAD[right]
    path = tmp_path / "own.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_scheme(str(path)).name == "own"
    path.write_text(GOOD.replace(right, wrong), encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_scheme(str(path))


@pytest.mark.parametrize("text", ['"><Image value="x"/>', "]]>&lt;", "\x0b\x00 & <b>", "\ud7ff\ufffe"])
def test_hostile_texts_of_a_scheme_are_texts_in_the_template(text: str) -> None:
    loaded = load_scheme("cube").model_dump(mode="json")
    loaded["title"] = loaded["criteria"][0]["question"] = text
    loaded["criteria"][0]["options"][0]["label"] = text
    root = ElementTree.fromstring(template(Scheme.model_validate(loaded)))
    assert [tag.get("name") for tag in root.iter("Image")] == ["picture_1"]
    assert "<" not in str(next(root.iter("Choice")).get("html"))


def test_options_and_questions_follow_the_regions_of_a_study() -> None:
    names = ("Africa", "Americas", "Côte d'Ivoire", "日本")
    form = load_scheme("inclusion_task2").of_regions(names)
    for question in ("object_regions", "background_regions"):
        options = form.criterion(question).options
        assert [option.label for option in options] == [*names, "None, or I cannot tell"]
        assert [option.value for option in options][:3] == ["af", "americas", "cotedivoire"]
    assert load_scheme("cube").of_regions(names) == load_scheme("cube")
    for twice in ((), ("Africa", "AFRICA"), ("NA",)):
        with pytest.raises(UsageError, match="asks about each region"):
            load_scheme("inclusion_task2").of_regions(twice)


def test_none_of_the_pictures_is_an_answer_and_an_answer_is_demanded() -> None:
    form = load_scheme("inclusion_task1")
    shown = form.criterion("shown")
    assert (shown.required, shown.alone) == (True, ("none",))
    assert [value for value, _ in fixed_options(shown, form)] == ["1", "2", "3", "none"]
    nothing: dict[str, tuple[str, ...]] = {"similar": ("2",), "confidence": ("low",), "appealing": ("3",)}
    assert [one.reason for one in answer_mistakes(form, nothing, {}, {})] == ["required answer missing"]
    assert list(answer_mistakes(form, {**nothing, "shown": ("none",)}, {}, {})) == []
    both = answer_mistakes(form, {**nothing, "shown": ("1", "none")}, {}, {})
    assert [one.reason for one in both] == ["answers that exclude each other"]


def test_tones_are_the_published_swatches() -> None:
    options = load_scheme("linguistic_dialect").criterion("monk_tone").options
    assert [option.colour for option in options] == [*(f"#{swatch}" for swatch in MONK_SWATCHES), None]


@pytest.mark.parametrize(("form", "steps"), [("c3_images", 6), ("c3_captions", 6), ("cultivate", 3)])
def test_every_step_of_these_scales_says_what_it_means(form: str, steps: int) -> None:
    levels = [one.levels for one in load_scheme(form).criteria if one.levels]
    assert (len(levels), {len(one) for one in levels}) == (steps, {5})
    assert len({level for one in levels for level in one}) == 5 * steps


def test_people_and_the_likert_judge_are_given_the_same_steps() -> None:
    judged = " ".join(wording("likert").split())
    for name in ("faith", "hal", "exag"):
        levels = load_scheme("cultivate").criterion(name).levels
        assert "; ".join(f"{step} {level}" for step, level in enumerate(levels, 1)) in judged


def test_a_scheme_without_the_newer_keys_keeps_the_name_of_its_project() -> None:
    """The answers to a form that was handed out before belong to it as before."""
    asked = load_scheme("cube").as_asked()
    assert not {"levels", "open", "each_region"} & set(asked["criteria"][0])
    assert "colour" not in asked["criteria"][0]["options"][0]
    assert load_scheme("c3_images").as_asked()["criteria"][0]["levels"]
