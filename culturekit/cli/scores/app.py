"""`culturekit score`: from tables to scores, one command per family of metrics."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.families.listing import FAMILIES, family_places

__all__ = ["score_app"]


def at(place: str, example: str) -> CommandAt:
    """Say where a command is that is not made from a family."""
    return CommandAt(f"culturekit.cli.scores.{place}", example)


FAMILY = {name: CommandAt(place) for name, place in FAMILIES.items()}

COMMANDS = {
    "qvs": FAMILY["qvs"],
    "ahead": FAMILY["ahead"],
    "c3": FAMILY["c3"],
    "compare": FAMILY["compare"],
    "stability": at(
        "stability:stability",
        "--scores clip=scores/scores.parquet --scores siglip=others/scores.parquet --out stability",
    ),
    "routes": FAMILY["routes"],
    "gaps": FAMILY["gaps"],
    "meta": FAMILY["meta"],
    "agreement": FAMILY["agreement"],
    "audit-sample": FAMILY["audit-sample"],
    "distribution": FAMILY["distribution"],
    "task1": FAMILY["task1"],
    "task2": FAMILY["task2"],
    "survey": FAMILY["survey"],
    "tones": FAMILY["tones"],
    "dialects": FAMILY["dialects"],
    "neutral": FAMILY["neutral"],
    "question-pairs": FAMILY["question-pairs"],
    "ratings": FAMILY["ratings"],
    "realism": at("realism:realism", "--real real --fake vectors --images images/images.parquet --out scores"),
    "clip": at("clip:clip", "--vectors vectors --texts prompt-vectors --images images/images.parquet --out scores"),
    "questions": at(
        "questions:questions",
        "--images images/images.parquet --judgments judgments/judgments.parquet --questions questions.parquet "
        "--out scores",
    ),
    "pairs": FAMILY["pairs"],
    "spread": FAMILY["spread"],
    "within": FAMILY["within"],
}


def outside() -> dict[str, CommandAt]:
    """Say where the families of other packages are."""
    return {name: CommandAt(place) for name, place in family_places().items() if name not in FAMILIES}


score_app = typer.Typer(
    no_args_is_help=True,
    help="Scores with intervals, from the tables of earlier stages.",
    cls=lazy_group("score", COMMANDS, outside),
)


@score_app.callback()
def score_group() -> None:
    """Keep `score` a group however many commands it has."""
