"""What the authors published, filled into recipes that ask for it, and what a plan says: deviations, and people."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from culturekit.llm.models import published_models
from culturekit.recipes.parts import deviations, with_published

GROUND: Mapping[str, object] = {
    name: specs if name == "proposers" else specs[0] for name, specs in published_models("cultivate").items()
}
"""The models of the published code, at its temperatures; the paper says 0.2 for proposers. That code asks up to three
times for a reply that can be read, this engine once more, telling what was wrong."""

_PUBLISHED = published_models("cultivate-looking")

PUBLISHED: Mapping[str, Any] = {
    "seed": 42,
    "images": {"slots": 10, "seeds": "counted"},
    "real": {"per_prompt": 20, "keep": 5, "scorer": _PUBLISHED["real_scorer"][0]},
    "extractor": _PUBLISHED["extractor"][0],
    "extraction": {"reply_tokens": 64, "prompted": True},
    "scorer": _PUBLISHED["scorer"][0],
    "raters": list(_PUBLISHED["raters"]),
    "encoder": _PUBLISHED["encoder"][0],
    "scores": {"tau": 0.52},
}
"""Everything else that the paper and its code name, as a recipe says it."""

DEVIATIONS = (
    "wordings are ours, of the same rules: `wordings:` takes the authors' from files",
    "temperature of proposers: 0.25 as in the published code, where the paper says 0.2 (?temperature=0.2)",
    "a reply that cannot be read is asked for once more with the reason, where the published code tries three times",
    "EXAG and VQAScore ask a vision model for the probability of yes, where the paper takes CLIP-FlanT5-XXL",
    "the published judge is InternVL2.5 in the text and InternVL3-14B in its brackets; the latter is named here",
    "photographs come from where you take them (`references collect`: open licences), where the paper took Google's",
)
"""What no setting changes, or what is read from the paper where it can be read in two ways."""

ROOM = (
    "64 tokens hold 5 to 8 phrases, where 8 take 44 to 68: lists of rich scenes are cut, the rest of them is read and "
    "counted, and ALIGN of what shows most is too low; extraction.reply_tokens=256 has room for all"
)

HOURLY = 8.0
MINUTES = 10.0
"""US dollars an hour, as the paper paid on Prolific, and minutes that a form takes, which it does not say."""


def filled_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what the authors published, wherever a recipe does not say otherwise."""
    filled = with_published(given, PUBLISHED)
    if isinstance(filled["scores"], dict) and "quantile" in (given.get("scores") or {}):
        del filled["scores"]["tau"]
    if isinstance(filled.get("ground"), Mapping):
        filled["ground"] = {**GROUND, **filled["ground"], "preset": "authors"}
    return filled


def deviating(recipe: Any) -> Iterator[str]:  # noqa: ANN401 - a recipe of this kind, which imports this
    """Say where a recipe that takes the authors' preset is not as published, and what the published room costs."""
    yield from deviations(recipe.model_dump(mode="json"), {**PUBLISHED, "ground": GROUND})
    counts = {model.name: recipe.plan_of(model.name).slots for model in recipe.models}
    yield "Images of each prompt: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    if recipe.extraction.reply_tokens <= PUBLISHED["extraction"]["reply_tokens"]:
        yield f"As published, at a cost: {ROOM}"
    yield from (f"Not as published: {text}" for text in DEVIATIONS)


def people_lines(forms: int, real: int, each: int) -> Iterator[str]:
    """Say what forms take of people's time and money."""
    every = (forms + real) * each
    hours = every * MINUTES / 60
    yield (
        f"People: {forms:,} forms about models and {real:,} about photographs, {each} people each: {every:,} answers, "
        f"about {hours:,.0f} hours at {MINUTES:g} minutes, ${math.ceil(hours * HOURLY):,} at ${HOURLY:g} an hour"
    )
