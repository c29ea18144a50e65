from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from culturekit.core.schemas import IMAGES
from culturekit.generation.comparability import differ_in, not_comparable, traits_of


def table(*rows: Mapping[str, object]) -> pl.DataFrame:
    plain = {
        "image_id": "i", "path": "x", "model": "m", "rewriter": "off", "provider_params": "{}", "sha256": "",
        "width": 8, "height": 8, "status": "ok", "seed_honoured": True,
    }  # fmt: skip
    return pl.DataFrame([{**plain, **row} for row in rows], schema=IMAGES.schema)


REFUSED = {"status": "refused", "width": 0, "height": 0, "rewriter": "unknown"}
UNSENT = {"provider_params": '{"negative_text":"not sent: the API takes none"}'}
LEFT_OUT = {"provider_params": '{"negative_prompt_left_out":"fog"}'}
CUT = {"provider_params": '{"prompt_cut":{"tokenizer":[90,77]}}'}
V1, V2 = ({"model_version": version} for version in ("v1", "v2"))
FIVE, SIX = ({"prompt_id": "p", "repeat": 0, "slot": 1, "seed": seed} for seed in (5, 6))
NO_SEEDS = {"seed_honoured": False}
CASES: Mapping[str, tuple[Mapping[str, Sequence[Mapping[str, object]]], list[str]]] = {
    "made alike": ({"a": [{}, REFUSED], "b": [{}]}, []),
    "each difference": (
        {"b": [{"rewriter": "on", "width": 16, **NO_SEEDS}, {"rewriter": "unknown"}], "a": [{}, {}]},
        ["a rewriter off; b rewriter on (1), unknown (1)", "a honoured: yes; b honoured: no (1), yes (1)",
         "a 8x8; b 16x8 (1), 8x8 (1)"],
    ),
    "one model of two sizes": ({"a": [{}, {"width": 9}]}, ["a 8x8 (1), 9x8 (1)"]),
    "unsent negative prompts": ({"a": [UNSENT], "b": [{}]}, ["Negative prompts could not be sent to a"]),
    "unsent to both": ({"a": [UNSENT], "c": [UNSENT]}, []),
    "not heeded": ({"a": [LEFT_OUT], "b": [{}]}, ["could not be sent to a"]),
    "no images": ({"a": [], "b": [{}]}, []),
    "cut prompts": ({"a": [CUT, {}], "b": [{}]}, ["for a (1 image): only their beginning"]),
    "versions": ({"a": [V1, V1, V2]},
        ["More than one version answered under one name: a was v1 (2), v2 (1). Scores mix them."]),
    "two models are two versions": ({"a": [V1], "b": [V2]}, []),
    "other seeds": ({"a": [FIVE], "b": [SIX]}, ["other seeds in b than in a"]),
    "the same seeds": ({"a": [FIVE], "b": [FIVE]}, []),
    "other slots": ({"a": [FIVE], "b": [{**SIX, "slot": 2}]}, []),
    "seeds that do not count": ({"a": [{**FIVE, **NO_SEEDS}], "b": [{**SIX, **NO_SEEDS}]}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_sets_models_apart_is_said_and_nothing_else(name: str) -> None:
    models, spoken = CASES[name]
    found = not_comparable({model: traits_of(table(*rows)) for model, rows in models.items()})
    assert [words for words, line in zip(spoken, found, strict=True) if words not in line] == [], found


def test_two_models_differ_in_what_a_table_can_name() -> None:
    a, b = traits_of(table({})), traits_of(table({"rewriter": "on", "height": 9}))
    assert differ_in(a, b) == ["rewriter", "size"]
    assert differ_in(a, a) == []
