import polars as pl

from culturekit.core.schemas import IMAGES
from culturekit.generation.comparability import Traits, differ_in, not_comparable, traits_of


def table(*rows: dict[str, object]) -> pl.DataFrame:
    plain = {
        "image_id": "i", "path": "x", "model": "m", "rewriter": "off", "provider_params": "{}", "sha256": "",
        "width": 8, "height": 8, "status": "ok", "seed_honoured": True,
    }  # fmt: skip
    return pl.DataFrame([plain | row for row in rows], schema=IMAGES.schema)


def test_models_made_alike_bring_no_warning() -> None:
    one = traits_of(table({}, {"status": "refused", "width": 0, "height": 0, "rewriter": "unknown"}))
    assert not_comparable({"a": one, "b": traits_of(table({}))}) == []


def test_each_difference_is_said_with_its_models() -> None:
    a = traits_of(table({}, {}))
    b = traits_of(table({"rewriter": "on", "seed_honoured": False, "width": 16}, {"rewriter": "unknown"}))
    rewriter, seeds, sizes = not_comparable({"b": b, "a": a})
    assert "a rewriter off; b rewriter on (1), unknown (1)" in rewriter
    assert "a honoured: yes; b honoured: no (1), yes (1)" in seeds
    assert "a 8x8; b 16x8 (1), 8x8 (1)" in sizes


def test_one_model_that_mixes_sizes_is_warned_about() -> None:
    assert len(not_comparable({"a": traits_of(table({}, {"width": 9}))})) == 1


def test_negative_prompts_that_were_not_sent_count() -> None:
    params = '{"negative_text":"not sent: the API takes none"}'
    without, alike = traits_of(table({"provider_params": params})), traits_of(table({}))
    assert "Negative prompts could not be sent to a" in not_comparable({"a": without, "b": alike})[0]
    assert not_comparable({"a": without, "c": without}) == []


def test_a_model_without_images_differs_from_none() -> None:
    assert not_comparable({"a": Traits({}, {}, {}), "b": traits_of(table({}))}) == []


def test_a_negative_prompt_that_a_pipeline_heeds_not_counts_as_unsent() -> None:
    left_out = traits_of(table({"provider_params": '{"negative_prompt_left_out":"fog"}'}))
    assert "could not be sent to a" in not_comparable({"a": left_out, "b": traits_of(table({}))})[0]


def test_prompts_that_were_cut_and_versions_that_changed_are_said() -> None:
    cut = traits_of(table({"provider_params": '{"prompt_cut":{"tokenizer":[90,77]}}'}, {}))
    assert "for a (1 image): only their beginning" in not_comparable({"a": cut, "b": traits_of(table({}))})[0]
    mixed = traits_of(table({"model_version": "v1"}, {"model_version": "v1"}, {"model_version": "v2"}))
    assert not_comparable({"a": mixed}) == [
        "More than one version answered under one name: a was v1 (2), v2 (1). Scores mix them."
    ]
    one, other = (traits_of(table({"model_version": version})) for version in ("v1", "v2"))
    assert not_comparable({"a": one, "b": other}) == [], "two models are two versions"


def test_other_seeds_for_the_same_slot_are_said_where_seeds_count() -> None:
    slot = {"prompt_id": "p", "repeat": 0, "slot": 1}
    one, other = (traits_of(table({**slot, "seed": seed})) for seed in (5, 6))
    assert "other seeds in b than in a" in not_comparable({"a": one, "b": other})[0]
    assert not_comparable({"a": one, "b": one}) == []
    elsewhere = traits_of(table({**slot, "slot": 2, "seed": 6}))
    assert not_comparable({"a": one, "b": elsewhere}) == []
    ignored = [traits_of(table({**slot, "seed": seed, "seed_honoured": False})) for seed in (5, 6)]
    assert not_comparable({"a": ignored[0], "b": ignored[1]}) == []


def test_two_models_differ_in_what_a_table_can_name() -> None:
    a, b = traits_of(table({})), traits_of(table({"rewriter": "on", "height": 9}))
    assert differ_in(a, b) == ["rewriter", "size"]
    assert differ_in(a, a) == []
