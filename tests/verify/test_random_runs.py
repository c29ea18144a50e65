"""Small recipes with options drawn at random: no run of any of them may be called tampered with."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.recipes.cube.keys import load_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import recipe_here
from tests.effort import THOROUGH
from tests.oracles.scored_again import scored_again

KERNELS: tuple[tuple[float, float, float], ...] = (
    (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0, 0.5, 0.5), (0.2, 0.3, 0.5),
)  # fmt: skip
COUNTRIES = ("JP", "NG", "TR", "US")


def backend(rng: np.random.Generator) -> str:
    """Draw a simulated model."""
    knobs: dict[str, object] = {
        "temperature": round(float(rng.uniform(0, 12)), 1), "collapse": round(float(rng.random()), 2),
        "modes": int(rng.integers(1, 5)), "error": round(float(rng.uniform(0, 0.6)), 2),
        "noise": round(float(rng.random() ** 2), 2), "confusability": round(float(rng.uniform(0, 0.7)), 2),
        "hub_skew": round(float(rng.uniform(0, 0.5)), 2), "drift": round(float(rng.uniform(0, 0.5)), 2),
    }  # fmt: skip
    chosen = sorted(rng.choice(list(knobs), size=int(rng.integers(0, 4)), replace=False).tolist())
    return "simulated" + ("?" + "&".join(f"{name}={knobs[name]}" for name in chosen) if chosen else "")


def random_recipe(seed: int) -> dict[str, Any]:
    """Draw a recipe of one or two concepts, two to five models, and parts of an evaluation that may or may not be."""
    rng = np.random.default_rng(seed)

    def maybe(share: float) -> bool:
        return bool(rng.random() < share)

    def any_of(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    slots, audited, within = int(rng.integers(2, 10)), maybe(0.6), maybe(0.3)
    kinds = ["underspecified", *(["cube"] if maybe(0.2) else [])]
    more = rng.permutation(COUNTRIES)[: 0 if within else int(rng.integers(0, 5))].tolist()
    countries = sorted([any_of("BR", "IN"), any_of("FR", "IT"), *more])
    order = any_of(1.0, 1.0, 2.0, 0.5, "inf")
    drawn = sorted(rng.choice(len(KERNELS), size=int(rng.integers(1, 4)), replace=False).tolist())
    recipe: dict[str, Any] = {
        "recipe": "cube",
        "seed": int(rng.integers(1, 10**9)),
        "dump": ["sample"],
        "concepts": [any_of("art", "landmarks"), *(["cuisine"] if maybe(0.15) else [])],
        "countries": countries,
        "prompts": {"kinds": ["cube", "underspecified", "within-country"], "per": int(rng.integers(1, 3))},
        "references": {"backend": "simulated", "per_artifact": int(rng.integers(1, 4))},
        "images": {"kinds": kinds, "slots": slots, "repeats": int(rng.integers(1, 3)) + (36 // slots) * audited},
        "mapping": {"k": int(rng.integers(1, 6)), "aggregate": any_of("max", "top3")},
        "models": [{"name": f"model-{number}", "backend": backend(rng)} for number in range(int(rng.integers(1, 4)))],
        "scores": {
            "kernels": [list(KERNELS[number]) for number in drawn], "q": order,
            "size": int(rng.integers(2, slots + 1)), "missing": any_of("distinct", "equal"),
            "partial": any_of("drop", "paper"),
            "confidence": any_of(0.95, 0.9, 0.8),
        },
    }  # fmt: skip
    if order != 2.0 and maybe(0.4):
        recipe["scores"]["other_orders"] = [2.0]
    if audited:
        raters = {"raters": int(rng.integers(1, 4)), "accuracy": any_of(1.0, 0.95, 0.9)}
        recipe["audit"] = {"images": int(rng.integers(20, 60)), "raters": raters}
    if maybe(0.4):
        recipe["diagnosis"] = {"floor_repeats": int(rng.integers(1, 3)), "ceiling_repeats": int(rng.integers(2, 7))}
    if maybe(0.3):
        recipe["realism"] = {"k": 1, "fewest": 8, "splits": 2}
    if within:
        recipe["within"] = {"repeats": 1, "slots": slots}
        if maybe(0.6):
            recipe["gaps"] = {"scheme": any_of("cultivate", "un-m49-region")}
    if maybe(0.2):
        recipe["instruments"] = [{"name": "other", "encoder": "embedded"}]
    return recipe


SEVERAL = ("c3", "cultivate", "inclusion", "linguistic")
PLACES = "objects: [bag, dog, stove]\nregions: {Africa: [NG, ZA], Europe: [ES, IT], Southeast Asia: [ID, TH]}\n"


def random_settings(kind: str, seed: int, folder: Path) -> list[str]:
    """Draw settings for the shipped recipe of another kind: small, and with parts that may or may not be.

    Args:
        kind: one of SEVERAL.
        seed: of the draws.
        folder: where files may be written that the settings name.
    """
    rng = np.random.default_rng([seed, SEVERAL.index(kind)])
    settings = {"seed": int(rng.integers(1, 10**9))} | SETTINGS[kind](Drawing(rng), folder)
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


@dataclass(frozen=True)
class Drawing:
    """Draws choices."""

    rng: np.random.Generator

    def any_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def maybe(self, share: float, settings: dict[str, Any], otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
        """Give settings by chance, and else others."""
        return settings if self.rng.random() < share else otherwise or {}

    def some_of(self, *choices: Any, least: int = 1) -> list[Any]:
        count = int(self.rng.integers(least, len(choices) + 1))
        return [choices[place] for place in sorted(self.rng.choice(len(choices), size=count, replace=False).tolist())]

    def number(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 2)

    def count(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def people(self) -> dict[str, float]:
        """Draw how simulated people answer."""
        careless = self.any_of(0, 0.05, 0.3)
        return {"accuracy": self.number(0.75, 1), "scatter": self.number(0, 1), "careless": careless}


def c3_settings(draw: Drawing, folder: Path) -> dict[str, Any]:
    """Draw captions, a judge, pairs and people."""
    sample = draw.count(20, 40)
    settings = {
        "captions.count": draw.count(sample, 70), "captions.per_round": draw.count(1, 4), "captions.sample": sample,
        "captions.similarity": draw.number(0.6, 0.95),
        "judge": f"simulated:viewer?omits={draw.number(0, 0.3)}&halo={draw.number(0, 1)}",
        "objects.dimensions": draw.some_of("objects", "attire", "interaction"),
    }  # fmt: skip
    settings |= draw.maybe(0.3, {"images.slots": 2})
    settings |= draw.maybe(0.2, {"pairs": None}, {
        "pairs.simulated.each": draw.count(2, 3), "pairs.keep": draw.count(5, 20),
        "pairs.strategies": draw.some_of("random", "labse", "clip", "objects", "no-objects", "c3"),
        "pairs.forms": draw.some_of("imagefolder", "webdataset"), "pairs.missing": draw.any_of("sum", "leave-out"),
        "pairs.simulated.wrong": draw.number(0, 0.5),
    })  # fmt: skip
    return settings | draw.maybe(0.2, {"people": None}, {
        "people.pairs": draw.count(20, 60), "people.prompts": draw.count(10, sample),
        "people.raters": draw.count(1, 3), "people.resamples": 99, "people.simulated": draw.people(),
    })  # fmt: skip


def cultivate_settings(draw: Drawing, folder: Path) -> dict[str, Any]:
    """Draw countries, references, a threshold and people."""
    settings: dict[str, Any] = {
        "ground.countries": draw.some_of("US", "FR", "IR", "NG", least=2), "ground.per_category": 1,
        "images.slots": draw.count(1, 3), "real.per_prompt": draw.count(2, 3), "real.keep": draw.count(1, 2),
        "scores.target": draw.any_of("these", "population"), "scores.reduce": draw.any_of("mean", "max"),
        "scores.aggregate": draw.any_of("dimension", "pooled"), "scores.confidence": draw.any_of(0.8, 0.9, 0.95),
        "raters": [f"simulated:rater-{number}?lenient=0.2" for number in range(draw.count(0, 2))],
        "extractor": f"simulated:viewer?omits={draw.number(0, 0.4)}&halo={draw.number(0, 0.8)}&rewords=0.2",
    }  # fmt: skip
    settings |= draw.maybe(0.4, {"scores.tau": None, "scores.quantile": draw.number(0.5, 0.9)})
    return settings | draw.maybe(0.2, {"people": None}, {
        "people.images": draw.count(1, 2), "people.prompts": draw.count(8, 40), "people.in_region": draw.count(1, 3),
        "people.resamples": 99, "people.simulated": draw.people(),
    })  # fmt: skip


def inclusion_settings(draw: Drawing, folder: Path) -> dict[str, Any]:
    """Draw models, extractors and people of a small list of places."""
    (folder / "places.yaml").write_text(PLACES, encoding="utf-8")
    models = [
        f"simulated-objects?regional={draw.number(0.1, 0.6)}&exaggerates={draw.number(0, 0.9)}&crude=0.1"
        f"&shows={draw.number(0.7, 1)}"
        for _ in range(draw.count(1, 3))
    ]
    encoders = [f"simulated-objects?blur={draw.number(0.3, 1)}&flaws={draw.number(0, 2)}" for _ in range(3)]
    extractors = [{"name": f"x{number}", "encoder": spec} for number, spec in enumerate(encoders[: draw.count(1, 3)])]
    each = draw.count(10, 16)
    settings: dict[str, Any] = {
        "places": str(folder / "places.yaml"), "k": draw.count(2, 4), "images.slots": each, "photographs.each": each,
        "models": [{"name": f"m{number}", "backend": spec} for number, spec in enumerate(models)],
        "extractors": extractors, "texts": extractors[-1]["name"], "threshold": draw.number(0.1, 0.25),
    }  # fmt: skip
    settings |= draw.maybe(0.3, {"thresholds": {"m0": 0.2}}) | draw.maybe(0.3, {"per_cell": draw.count(6, each)})
    return settings | draw.maybe(0.2, {"people": None}, {
        "people.images": draw.count(2, 8), "people.near": draw.count(0, 1), "people.far": 1,
        "people.scaled": True, "people.bins": draw.count(2, 5),
        "people.simulated": draw.people(),
    })  # fmt: skip


def linguistic_settings(draw: Drawing, folder: Path) -> dict[str, Any]:
    """Draw prompts, detectors and people."""
    settings: dict[str, Any] = {
        "prompts.kinds": draw.some_of("dialects", "neutral", "specific"), "prompts.nouns": draw.count(2, 4),
        "images.slots": draw.count(3, 6), "detectors": draw.some_of("ita", "dall-eval"),
        "questions.logit_scale": draw.any_of(1, 10, 100), "confidence": draw.any_of(0.8, 0.9, 0.95),
    }  # fmt: skip
    return settings | draw.maybe(0.2, {"people": None}, {
        "people.persons": draw.count(10, 100), "people.places": draw.count(10, 150), "people.raters": draw.count(1, 3),
        "people.simulated": draw.people(),
    })  # fmt: skip


SETTINGS: dict[str, Callable[[Drawing, Path], dict[str, Any]]] = {
    "c3": c3_settings, "cultivate": cultivate_settings, "inclusion": inclusion_settings,
    "linguistic": linguistic_settings,
}  # fmt: skip


def more_of_cube(seed: int) -> dict[str, Any]:
    """Draw parts of `cube` that its other recipe lacks: people who rate, faithfulness, tags and metrics of families."""
    draw = Drawing(np.random.default_rng([seed, 99]))
    recipe = random_recipe(seed)
    recipe["images"]["kinds"] = sorted({*recipe["images"]["kinds"], "cube"})
    asked = {"prompts": draw.count(6, 20), "in_region": draw.count(1, 3), "out_of_region": draw.count(0, 1),
             "simulated": draw.people(), "resamples": 99}  # fmt: skip
    recipe |= draw.maybe(0.6, {"annotations": asked})
    recipe |= draw.maybe(0.3, {"models": [{"name": "only", "backend": "simulated"}]})
    return recipe


QUICK = (8, 13, 36)  # A run without an audit, one of a kernel that has no name, and one with an audit


def verified(seed: int, folder: Path) -> None:
    """Run a recipe and verify it."""
    file = folder / f"{seed}.yaml"
    file.write_text(yaml.safe_dump(random_recipe(seed)), encoding="utf-8")
    recipe_here(load_recipe(file), folder / "run")
    answer = verify_run(folder / "run")
    assert [str(finding) for finding in answer.findings] == []
    assert answer.exit_code == 0
    assert {verdict.verdict for verdict in answer.verdicts} <= {"verified"}
    scored_again(folder / "run/scores")
    told = pl.read_parquet(folder / "run/scores/scores.parquet").filter(metric="vs")
    lowest = 1 / told["params"].str.json_path_match("$.size").cast(pl.Float64)
    assert (told["ci_low"].fill_nan(1.0) >= lowest - 1e-9).all()
    assert (told["ci_high"].fill_nan(1.0) <= 1 + 1e-9).all()
    page = (folder / "run/report/report.html").read_text(encoding="utf-8")
    scores = load_recipe(file).scores
    caption = re.search(r"<caption>Diversity VS/(\d+) over all prompts, (.+?) kernel", page)
    assert caption is not None
    assert int(caption[1]) == scores.size
    weights = STANDARD_KERNELS.get(caption[2]) or tuple(map(float, caption[2].split(", ")))
    assert weights in scores.kernels


@pytest.mark.parametrize("seed", QUICK)
def test_an_untouched_run_is_verified(seed: int, tmp_path: Path) -> None:
    verified(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in range(52 if THOROUGH else 9) if seed not in QUICK])
def test_more_untouched_runs_are_verified(seed: int, tmp_path: Path) -> None:
    verified(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="each takes a minute or more")
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_untouched_runs_of_other_recipes_are_verified(seed: int, tmp_path: Path) -> None:
    """A recipe that is refused, as its parts do not fit together, is none."""
    kind = (*SEVERAL, "cube")[seed % 5]
    settings = random_settings(kind, seed, tmp_path) if kind in SEVERAL else []
    if kind == "cube":
        (tmp_path / "cube.yaml").write_text(yaml.safe_dump(more_of_cube(seed)), encoding="utf-8")
    try:
        recipe_here(
            load_any_recipe(find_recipe(kind) if settings else tmp_path / "cube.yaml", settings), tmp_path / "run"
        )
    except UsageError as refused:
        pytest.skip(str(refused))
    answer = verify_run(tmp_path / "run")
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    assert answer.exit_code == 0
    assert "wrong" not in {verdict.verdict for verdict in answer.verdicts}
