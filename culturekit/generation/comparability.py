"""What of two models' images cannot be compared as if only the models differed, read from their tables."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import polars as pl

from culturekit.core.errors import counted
from culturekit.generation.backend import Slot

_UNKNOWN = "unknown"
_SEEDS_COMPARED = 1_000  # of so many slots, the first by prompt, two models' seeds are compared
_UNSENT = '"negative_text":"not sent|"negative_prompt_left_out":'
_CUT = '"prompt_cut":'  # how a backend says in `provider_params` what became of a prompt


@dataclass(frozen=True, slots=True)
class Traits:
    """How images were made, as far as it bears on comparing them: most with how many images have it."""

    rewriter: Mapping[str, int]  # whether the provider rewrote prompts
    seeds: Mapping[str, int]  # whether seeds were honoured
    sizes: Mapping[str, int]  # widths and heights of the images there are
    unsent_negatives: int = 0  # prompts whose negative part was not sent, or had no effect
    versions: Mapping[str, int] = field(default_factory=dict)  # what answered, of the images there are
    cut_prompts: int = 0  # prompts that were longer than a text encoder reads
    first_seeds: Mapping[Slot, int] = field(default_factory=dict)  # the seeds of some slots, the first

    def noted(self) -> dict[str, object]:
        """Write the traits for a manifest."""
        return {
            "rewriter": dict(self.rewriter), "seed_honoured": dict(self.seeds), "sizes": dict(self.sizes),
            "negative_prompts_not_sent": self.unsent_negatives, "versions": dict(self.versions),
            "prompts_cut": self.cut_prompts,
        }  # fmt: skip


_Models: TypeAlias = Mapping[str, Traits]
_Check: TypeAlias = Callable[[_Models], str]


def traits_of(images: pl.DataFrame) -> Traits:
    """Read the traits of a table of images; those that were not made have no size."""
    finished = images.filter(pl.col("status") == "ok")
    honoured = {True: "yes", False: "no", None: _UNKNOWN}
    slots = finished.select("prompt_id", "repeat", "slot", "seed").drop_nulls().sort("prompt_id", "repeat", "slot")
    first = slots.head(_SEEDS_COMPARED)
    return Traits(
        _tally(finished["rewriter"].to_list()),
        _tally([honoured[value] for value in finished["seed_honoured"].to_list()]),
        _tally([f"{width}x{height}" for width, height in finished.select("width", "height").iter_rows()]),
        int(images["provider_params"].str.contains(_UNSENT).sum()),
        _tally([version or _UNKNOWN for version in finished["model_version"].to_list()]),
        int(images["provider_params"].str.contains(_CUT, literal=True).sum()),
        {(prompt, repeat, slot): seed for prompt, repeat, slot, seed in first.iter_rows()},
    )


def _tally(values: list[str]) -> dict[str, int]:
    """Count values, in alphabetical order."""
    return dict(sorted(Counter(values).items()))


def not_comparable(models: _Models) -> list[str]:
    """Say in sentences what is not comparable between models, or within one; nothing where all is alike."""
    found = {name: traits for name, traits in sorted(models.items()) if traits.rewriter}
    return [sentence for check in _CHECKS.values() if (sentence := check(found))]


def differ_in(first: Traits, second: Traits) -> list[str]:
    """Name what two models' images differ in besides the model."""
    return [name for name, check in _CHECKS.items() if check({"a": first, "b": second})]


def _when_apart(trait: Callable[[Traits], Mapping[str, int]], word: str, sentence: str) -> _Check:
    """Make a check that a trait is the same for all images; `sentence` is filled with which models have which value."""

    def check(models: _Models) -> str:
        found = {name: trait(traits) for name, traits in models.items()}
        apart = len({value for count in found.values() for value in count}) > 1
        return sentence.format(_shares_by_model(found, word)) if apart else ""

    return check


def _by_seeds(models: _Models) -> str:
    """Compare the seeds of the slots that models have in common, where they count."""
    seeded = [(name, traits.first_seeds) for name, traits in models.items() if set(traits.seeds) != {"no"}]
    apart = [
        name for index, (name, seeds) in enumerate(seeded) for _, before in seeded[:index]
        if any(before[slot] != seed for slot, seed in seeds.items() if slot in before)
    ]  # fmt: skip
    if not apart:
        return ""
    return (
        f"The same slots have other seeds in {', '.join(dict.fromkeys(apart))} than in {seeded[0][0]}: "
        "they come from runs with different seeds, and images are not paired by them."
    )


def _by_negatives(models: _Models) -> str:
    unsent = [name for name, traits in models.items() if traits.unsent_negatives]
    if not unsent or len(unsent) == len(models):
        return ""
    return f"Negative prompts could not be sent to {', '.join(unsent)}; other models may have had them."


def _by_cuts(models: _Models) -> str:
    """Compare how much of the prompts was read."""
    cut = {name: traits.cut_prompts for name, traits in models.items() if traits.cut_prompts}
    if not cut:
        return ""
    shown = ", ".join(f"{name} ({counted(count, 'images')})" for name, count in cut.items())
    return f"Prompts were longer than a text encoder reads for {shown}: only their beginning counted there."


def _by_version(models: _Models) -> str:
    """Look for models that changed while they were asked."""
    changed = {name: traits.versions for name, traits in models.items() if len(traits.versions) > 1}
    if not changed:
        return ""
    return f"More than one version answered under one name: {_shares_by_model(changed, 'was ')}. Scores mix them."


# what is looked at, under the name it has in tables; each gives a sentence, or nothing where all is alike
_CHECKS: Mapping[str, _Check] = {
    "rewriter": _when_apart(
        lambda traits: traits.rewriter,
        "rewriter ",
        "Prompts were rewritten for some models and not, or nobody knows, for others: {}. "
        "A difference between them may be the rewriter's.",
    ),
    "seeds honoured": _when_apart(
        lambda traits: traits.seeds,
        "honoured: ",
        "Not all models honour seeds: {}. "
        "Images of those that do not cannot be made again, and repeats are not paired between models.",
    ),
    "seeds": _by_seeds,
    "size": _when_apart(
        lambda traits: traits.sizes,
        "",
        "Images differ in size: {}. Encoders see them scaled, and quality scores depend on size.",
    ),
    "negative prompts": _by_negatives,
    "prompts cut": _by_cuts,
    "versions": _by_version,
}


def _shares_by_model(models: Mapping[str, Mapping[str, int]], word: str) -> str:
    return "; ".join(f"{name} {word}{_shares(count)}" for name, count in models.items())


def _shares(count: Mapping[str, int]) -> str:
    """Write the values of one model, the most frequent first."""
    ordered = sorted(count.items(), key=lambda item: (-item[1], item[0]))
    first = [value if len(ordered) == 1 else f"{value} ({number:,})" for value, number in ordered[:4]]
    more = len(ordered) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
