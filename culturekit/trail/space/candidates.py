"""Candidates of either run, and of any mixture of their graphs and root configs: walked where no table has them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.kg.concepts import Concept
from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.walk.extract import extract
from culturekit.kg.walk.root_choice import load_successors
from culturekit.records.schemas import CANDIDATES
from culturekit.records.work import Work
from culturekit.trail.space.behind import Row, SpaceBehind, rows_of
from culturekit.trail.space.mixtures import MixedConfigs, Mixture

__all__ = ["MixedCandidates"]

logger = logging.getLogger(__name__)


class MixedCandidates:
    """The candidates that the changed rows are about, by item."""

    def __init__(self, sides: Sequence[SpaceBehind], qids: Iterable[str], work: Work) -> None:
        """Read them as the two runs found them."""
        self.sides = sides
        self.qids = sorted(set(qids))
        self.work = work
        self.tables = [side.candidates(self.qids) for side in sides]
        self.same_code = len({side.manifests["extract"].version for side in sides}) == 1
        self.configs = MixedConfigs(sides)
        self.walked: dict[tuple[str, ...], dict[tuple[str, str], Row]] = {}
        self.chosen: dict[tuple[str, Mixture], Mapping[tuple[str, str], Row]] = {}
        self.names: list[dict[str, str | None]] = [{}, {}]

    def candidate_of(self, qid: str, concept: str, mixture: Mixture) -> Row | None:
        """Give a candidate; None where this mixture has none."""
        return self.table(concept, mixture).get((qid, concept))

    def table(self, concept: str, mixture: Mixture) -> Mapping[tuple[str, str], Row]:
        """Find the run that has just this graph and config, or walk; worked out once for each mixture."""
        place = (concept, mixture)
        if place not in self.chosen:
            self.chosen[place] = self.choose(concept, mixture)
        return self.chosen[place]

    def choose(self, concept: str, mixture: Mixture) -> Mapping[tuple[str, str], Row]:
        """Find the run that has just this graph and config, or walk."""
        config = self.configs.config_of("extract", concept, mixture)
        if config is None:
            return {}
        graph, heirs = mixture.side_of("dump"), mixture.side_of_key("successors")
        wanted = (*self.identity(graph, heirs), config.content)
        for side in (mixture.side, 1 - mixture.side) if self.same_code else ():
            own = self.configs.config_of("extract", concept, Mixture(side))
            if own is not None and (*self.identity(side, side), own.content) == wanted:
                return self.tables[side]
        if wanted not in self.walked:
            self.walked[wanted] = self.walk(graph, heirs, config.concept)
        return self.walked[wanted]

    def identity(self, graph: int, heirs: int) -> tuple[str, str]:
        """Name by content what decides candidates beside the config."""
        return self.sides[graph].manifests["ingest"].sha256, self.sides[heirs].input_hash("extract", "successors")

    def walk(self, graph: int, heirs: int, concept: Concept) -> dict[tuple[str, str], Row]:
        """Extract a concept from a graph, as its own stage does."""
        logger.info("walking %s once more, with the graph of one run and the config of the other", concept.concept)
        place = self.sides[heirs].input_place("extract", "successors")
        with TemporaryDirectory(prefix="culturekit-diff-") as folder:
            out = Path(folder)
            work = Work({}, out, out, self.work.engine, self.work.progress)
            extract(work, self.sides[graph].graph, [concept], successors=load_successors(place) if place else {})
            return rows_of(out / "candidates.parquet", CANDIDATES, "qid", self.qids)

    def labels(self, row: Row, side: int) -> dict[str, str]:
        """Name the classes of a candidate as the graph of a run does, where its judge was told."""
        if "graph" not in self.sides[side].manifests["filter"].inputs:
            return {}
        wanted = [*row["p31"], *row["p279"]]
        if any(qid not in self.names[side] for qid in wanted):
            rows = [own for table in (*self.tables, *self.walked.values()) for own in table.values()]
            classes = sorted({qid for own in (row, *rows) for qid in (*own["p31"], *own["p279"])})
            found = GraphTables(self.sides[side].graph).names(classes)
            self.names[side].update({qid: found.get(qid) for qid in classes})
        return {qid: label for qid in wanted if (label := self.names[side][qid])}
