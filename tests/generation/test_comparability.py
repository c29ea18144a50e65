import polars as pl

from culturekit.generation.comparability import Traits, not_comparable, traits_of
from culturekit.records.schemas import IMAGES


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
