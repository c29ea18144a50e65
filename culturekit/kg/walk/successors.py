"""Which country has taken the place of which: an optional map for countries that are no more."""

from collections.abc import Mapping
from pathlib import Path

from culturekit.errors import ConfigError, Problem
from culturekit.kg.qids import Qid
from culturekit.storage.yaml_model import StrictModel, validate
from culturekit.storage.yaml_source import read_yaml

__all__ = ["load_successors"]


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
