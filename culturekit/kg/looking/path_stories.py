"""Paths told step by step: what each item says of the one before it, where the dump says so, what cuts the path."""

from collections.abc import Sequence

import numpy as np

from culturekit.kg.graph_tables import GraphTables, Said, label_text
from culturekit.kg.looking.ancestors import Ancestors
from culturekit.kg.looking.explanation import PathStep, PathStory, StepSaid
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES
from culturekit.kg.store import Graph
from culturekit.kg.walk.walk_choices import WalkChoices

__all__ = ["PathTeller"]


class PathTeller:
    """Tells the paths of one item."""

    def __init__(self, graph: Graph, tables: GraphTables, choices: WalkChoices, ancestors: Ancestors) -> None:
        """Keep what is told from."""
        self.graph = graph
        self.tables = tables
        self.choices = choices
        self.ancestors = ancestors

    def tell(self, paths: Sequence[tuple[int, ...]]) -> tuple[PathStory, ...]:
        """Tell paths, each a tuple of item numbers, root first."""
        numbers = sorted({number for path in paths for number in path})
        marks = self.choices.is_artifact(self.graph, np.array(numbers, np.uint32)).tolist()
        stops = [artifact and not self.choices.expand_artifacts for artifact in marks]
        artifacts = {number for number, stop in zip(numbers, stops, strict=True) if stop}
        facts = self.tables.facts(numbers)
        labels = self.tables.labels(numbers)
        stories = []
        for path in paths:
            steps = []
            for position, number in enumerate(path):
                before = path[position - 1] if position else None
                said = tuple(s for s in self.ancestors.said.get(number, ()) if position and s.value == before)
                last = position == len(path) - 1
                cut = self.cut(number, said, artifact=number in artifacts and not last) if position else None
                place = facts[number].place if number in facts else None
                told = tuple(StepSaid(s.property, s.rank, s.qualified, s.ended, s.counts) for s in said)
                steps.append(PathStep(f"Q{number}", labels[number], told, place, cut))
            is_open = all(step.cut is None for step in steps)
            stories.append(PathStory(f"Q{path[0]}", len(path) - 1, is_open, tuple(steps)))
        return tuple(stories)

    def cut(self, number: int, said: Sequence[Said], *, artifact: bool) -> str | None:
        """Say what keeps a walk from coming to an item, or from going on below it."""
        if not any(s.counts for s in said):
            ranks = sorted({f"{s.rank}{', ended' if s.ended else ''}" for s in said})
            return f"only statements that do not count ({'; '.join(ranks)})"
        if number in self.choices.excluded_classes:
            return "excluded class"
        if artifact:
            countries = self.tables.said([number], COUNTRY_PROPERTIES, self.choices.country_mask)
            values = sorted({s.value for s in countries if s.counts and s.value is not None})
            labels = self.tables.labels(values)
            return f"an artifact itself (country {', '.join(label_text(value, labels) for value in values)})"
        return None
