"""The recipe that lies beside a run against the stages that it is said to have made."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from culturekit.stages.roles import AUDITED_ANSWERS, IMAGES, SCORES, shows_nothing
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import RECIPE, RunTree

__all__ = ["check_recipe", "same_backend"]

OF_BUYING = frozenset({"rpm", "tpm", "price", "image_price", "image_tokens", "timeout", "api_key"})
"""Options of paid services that a stage leaves out of what it was made with."""

CHECK = "recipe"

CORRECTED_ORDER = 2.0
"""Of kernels with artifacts: a run with an audit scores it beside the orders that its recipe names."""


def check_recipe(tree: RunTree, ledger: Ledger) -> None:
    """Compare what the recipe asks for with the options and seeds in the manifests."""
    path = tree.root / RECIPE
    if tree.alone or not path.is_file():
        return
    with ledger.guarded(CHECK, RECIPE):
        recipe = json.loads(path.read_bytes())
        for what, expected, found in differences(tree, recipe):
            ledger.broken(CHECK, RECIPE, f"{what} is not what the run was made with", expected=expected, found=found)
        ledger.count("recipes compared with the stages")


def differences(tree: RunTree, recipe: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """List what the recipe says otherwise than the manifests."""
    manifests = {name: stage.manifest for name, stage in tree.stages.items()}
    models = {model["name"]: model["backend"] for model in recipe.get("models", [])}
    if (tuned := recipe.get("finetune")) is not None:
        models[tuned.get("name", "tuned")] = models[tuned["model"]]
    for name, backend in models.items():
        made = manifests.get(IMAGES.folder(name))
        if made is not None and made.stage == "generate" and "seed" in recipe:
            if made.seeds and made.seeds.get("images") != recipe["seed"]:
                yield f"the seed of {name}", made.seeds.get("images"), recipe["seed"]
            if not same_backend(str(made.options.get("backend")), str(backend)):
                yield f"the backend of {name}", made.options.get("backend"), backend
    for name in manifests:
        _, _, model = name.partition(IMAGES.folder(""))
        if IMAGES.folder(model) == name and not shows_nothing(model) and models and model not in models:
            yield "the list of models", f"{model} among them", ", ".join(models)
    scores = manifests.get(SCORES.folder())
    asked = recipe.get("scores") or {}
    audited = recipe.get("audit") or AUDITED_ANSWERS.folder() in manifests
    if scores is not None:
        for key in sorted(set(asked) & set(scores.options)):
            if key == "other_orders" and audited:
                if scores.options[key] not in (asked[key], [*asked[key], CORRECTED_ORDER]):
                    yield "scores.other_orders", scores.options[key], asked[key]
            elif asked[key] != scores.options[key]:
                yield f"scores.{key}", scores.options[key], asked[key]


def same_backend(made: str, asked: str) -> bool:
    """Tell whether two SPECs are of one backend with the same options, in any order; a stage may keep the name only."""
    (first, one), (second, other) = (
        (spec.partition("?")[0], unquote(spec.partition("?")[2])) for spec in (made, asked)
    )
    if ":" not in first:
        second = second.partition(":")[0]
    return first == second and (not one or deciding(one) == deciding(other))


def deciding(options: str) -> list[str]:
    """List the options of a SPEC that decide images; how fast and how dear they are bought does not."""
    return sorted(pair for pair in options.split("&") if pair.partition("=")[0] not in OF_BUYING)
