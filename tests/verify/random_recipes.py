"""Small recipes with options drawn at random: no run of any of them may be called tampered with."""

from typing import Any

import numpy as np

__all__ = ["random_recipe"]

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
