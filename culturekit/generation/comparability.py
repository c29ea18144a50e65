"""What of two models' images cannot be compared as if only the models differed, read from their tables."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

__all__ = ["Traits", "not_comparable", "traits_of"]

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Traits:
    """How images were made, as far as it bears on comparing them: each with how many images have it.

    `rewriter` is whether the provider rewrote prompts, `seeds` whether seeds were honoured, `sizes` are widths and
    heights of the images there are; `unsent_negatives` counts
    prompts whose negative part could not be sent.
    """

    rewriter: Mapping[str, int]
    seeds: Mapping[str, int]
    sizes: Mapping[str, int]
    unsent_negatives: int = 0

    def noted(self) -> dict[str, object]:
        """Write the traits for a manifest."""
        return {
            "rewriter": dict(self.rewriter),
            "seed_honoured": dict(self.seeds),
            "sizes": dict(self.sizes),
            "negative_prompts_not_sent": self.unsent_negatives,
        }


def traits_of(images: pl.DataFrame) -> Traits:
    """Read the traits of a table of images; those that were not made have no size."""
    made = images.filter(pl.col("status") == "ok")
    honoured = {True: "yes", False: "no", None: UNKNOWN}
    return Traits(
        counted(made["rewriter"].to_list()),
        counted([honoured[value] for value in made["seed_honoured"].to_list()]),
        counted([f"{width}x{height}" for width, height in made.select("width", "height").iter_rows()]),
        int(images["provider_params"].str.contains('"negative_text":"not sent', literal=True).sum()),
    )


def counted(values: list[str]) -> dict[str, int]:
    """Count values, in alphabetical order."""
    return dict(sorted(Counter(values).items()))


def not_comparable(models: Mapping[str, Traits]) -> list[str]:
    """Say in sentences what is not comparable between models, or within one; nothing where all is alike."""
    found = {name: traits for name, traits in sorted(models.items()) if traits.rewriter}
    warnings = []
    if differs([traits.rewriter for traits in found.values()]):
        warnings.append(
            "Prompts were rewritten for some models and not, or nobody knows, for others: "
            f"{told({name: traits.rewriter for name, traits in found.items()}, 'rewriter ')}. "
            "A difference between them may be the rewriter's."
        )
    if differs([traits.seeds for traits in found.values()]):
        warnings.append(
            "Not all models honour seeds: "
            f"{told({name: traits.seeds for name, traits in found.items()}, 'honoured: ')}. "
            "Images of those that do not cannot be made again, and repeats are not paired between models."
        )
    if differs([traits.sizes for traits in found.values()]):
        warnings.append(
            "Images differ in size: "
            f"{told({name: traits.sizes for name, traits in found.items()}, '')}. "
            "Encoders see them scaled, and quality scores depend on size."
        )
    unsent = [name for name, traits in found.items() if traits.unsent_negatives]
    if unsent and len(found) > len(unsent):
        warnings.append(f"Negative prompts could not be sent to {', '.join(unsent)}; other models may have had them.")
    return warnings


def differs(counts: list[Mapping[str, int]]) -> bool:
    """Tell whether a trait is not the same one for all images of all models."""
    return len({value for count in counts for value in count}) > 1


def told(models: Mapping[str, Mapping[str, int]], word: str) -> str:
    """Write who has what."""
    return "; ".join(f"{name} {word}{shares(count)}" for name, count in models.items())


def shares(count: Mapping[str, int]) -> str:
    """Write the values of one model, the most frequent first."""
    ordered = sorted(count.items(), key=lambda item: (-item[1], item[0]))
    first = [value if len(ordered) == 1 else f"{value} ({number:,})" for value, number in ordered[:4]]
    more = len(ordered) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
