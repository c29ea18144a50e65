"""Answers as rows of tables, their codes turned back into what they stand for."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from culturekit.annotate.check_answers import Offered, codes_of
from culturekit.annotate.exported_answers import KeyRow
from culturekit.annotate.exported_json import Answered
from culturekit.annotate.scheme import Criterion, Scheme

__all__ = ["annotation_rows", "meanings_of"]


def annotation_rows(answered: Answered, row: KeyRow, scheme: Scheme, flags: list[str]) -> Iterator[dict[str, Any]]:
    """Write one annotation as rows of the table `annotations`, one per question that was answered."""
    shared = {
        "item_id": row["item_id"],
        "annotator": answered.annotator,
        "annotator_region": row["annotator_region"],
        "in_region": row["in_region"],
        "scheme": scheme.name,
        "seconds": answered.seconds,
        "flags": flags,
    }
    offered: Offered = orjson.loads(row["options"])
    for criterion in scheme.criteria:
        if criterion.name not in answered.answers:
            continue
        for name, value, choice, text in cells(criterion, answered.answers[criterion.name], row, offered, scheme):
            comment = answered.comments.get(criterion.name) if text is None else text
            yield {**shared, "criterion": name, "value": value, "choice": choice, "text": comment}


Cell = tuple[str, float | None, str | None, str | None]
"""Criterion, value, choice, text."""


def cells(
    criterion: Criterion, chosen: tuple[str, ...], row: KeyRow, offered: Offered, scheme: Scheme
) -> Iterator[Cell]:
    """Write one answer; of several options each has a row of its own, 1 where it was chosen and 0 where not."""
    if criterion.type == "text":
        yield criterion.name, None, None, chosen[0]
    elif criterion.type == "scale":
        yield criterion.name, float(chosen[0]), None, None
    elif not criterion.several:
        counts = next((option.number for option in criterion.options if option.value == chosen[0]), None)
        yield criterion.name, counts, meaning(criterion, chosen[0], row, offered), None
    else:
        for code in codes_of(criterion, offered, scheme):
            what = (
                row["places"][int(code) - 1] if criterion.type == "pictures" else meaning(criterion, code, row, offered)
            )
            taken = code in chosen
            yield (
                f"{criterion.name}/{what}",
                float(taken),
                meaning(criterion, code, row, offered) if taken else None,
                None,
            )


def meaning(criterion: Criterion, code: str, row: KeyRow, offered: Offered) -> str:
    """Say what a code stands for: an option of the item, the image in a place, or itself."""
    if criterion.options_from is not None:
        return offered[criterion.options_from][code]["choice"]
    if criterion.type in {"picture", "pictures"}:
        return str(row["pictures"][int(code) - 1])
    return code


def meanings_of(answered: Answered, row: KeyRow, scheme: Scheme) -> Mapping[str, Mapping[str, str]]:
    """Tell everything that goes with the options an annotator chose, by question."""
    offered: Offered = orjson.loads(row["options"])
    return {
        criterion.name: offered[criterion.options_from][answered.answers[criterion.name][0]]
        for criterion in scheme.criteria
        if criterion.options_from is not None and not criterion.several and criterion.name in answered.answers
    }
