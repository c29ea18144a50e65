"""The concepts that a command walks, and what it says over their root configs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field

from culturekit.core.choices import CountryChoice, Ended, Ranks
from culturekit.core.errors import ConfigError, Problem
from culturekit.core.stage_command import Typed
from culturekit.core.yaml_source import StrictModel, read_yaml, validate
from culturekit.kg.concepts import Concept, load_concepts, with_hops
from culturekit.kg.countries import Qid


class SuccessorFile(StrictModel):
    """The file as a whole."""

    successors: dict[Qid, Qid]


def load_successors(path: Path) -> Mapping[int, int]:
    """Read the map, by QID number, chains followed to their end; a chain that comes back is refused."""
    source = read_yaml(path)
    stated = {int(old[1:]): int(new[1:]) for old, new in validate(source, SuccessorFile).successors.items()}
    last, problems = {}, []
    for old in stated:
        chain = [old]
        while chain[-1] in stated and len(chain) <= len(stated):
            chain.append(stated[chain[-1]])
        last[old] = chain[-1]
        if chain[-1] in stated:
            place = source.place(("successors", f"Q{old}"))
            problems.append(
                Problem(
                    "no last successor: the chain comes back to itself", place.where, place.line, f"successors.Q{old}"
                )
            )
    if problems:
        raise ConfigError(problems)
    return last


Roots: TypeAlias = Annotated[
    tuple[Concept, ...],
    Field(description="Root config: a YAML file, or a shipped concept. Repeatable."),
    Typed("roots", gather=load_concepts),
]


@dataclass(frozen=True, slots=True)
class RootChoice:
    """Root configs, and rules over those of all of them."""

    roots: Roots
    hops: Annotated[int | None, Field(ge=1, le=40, description="Hops for every root, over those of the file.")] = None
    ranks: Annotated[
        Ranks | None, Field(description="Statements that count, over the file; truthy: those of best rank.")
    ] = None
    ended: Annotated[
        Ended | None, Field(description="What to do with statements that have an end (P582), over the file.")
    ] = None
    country_choice: Annotated[
        CountryChoice | None,
        Field(description="Countries of P495 and P17, or of P17 only where P495 has none; over the file."),
        Typed("countries"),
    ] = None
    expand_artifacts: Annotated[
        bool | None, Field(description="Walk on below artifacts too, or not; over the file.")
    ] = None
    successors: Annotated[
        Path | None, Field(description="YAML file, `successors: {Q15180: Q159}`: which country stands for which.")
    ] = None

    def concepts(self) -> list[Concept]:
        """Give the concepts, these rules in the place of their own."""
        stated = {name: getattr(self, name) for name in ("ranks", "ended", "country_choice", "expand_artifacts")}
        over = {name: rule for name, rule in stated.items() if rule is not None}
        return [with_hops(concept, self.hops).model_copy(update=over) for concept in self.roots]

    def heirs(self) -> Mapping[int, int]:
        """Load which country stands for which; none without a file."""
        return {} if self.successors is None else load_successors(self.successors)
