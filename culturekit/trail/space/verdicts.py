"""What a judge says of a candidate under any mixture: by rule, by asking again who answers for nothing, or as known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from culturekit.builders.filtering.candidate_verdicts import FilterQuestions, rule_verdict, verdict_of, wording
from culturekit.errors import CultureKitError
from culturekit.kg.countries import by_qid
from culturekit.llm.client import FreeClient, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.free_asking import ask_free
from culturekit.llm.journal.journal_file import FILE
from culturekit.registry import parse_spec
from culturekit.storage.digests import digest_bytes
from culturekit.trail.space.behind import Row, SpaceBehind
from culturekit.trail.space.candidates import MixedCandidates
from culturekit.trail.space.factors import REVIEW, judge_of, judged_for_money
from culturekit.trail.space.mixtures import Mixture

__all__ = ["UNKNOWN", "MixedVerdicts"]

JUDGED: Final = "judge "
"""How the reason of a verdict begins that no rule decided."""

UNKNOWN: Final = "unknown"
"""The verdict of somebody who was never asked this."""


class MixedVerdicts:
    """The verdicts on candidates, as the two runs have them and as other mixtures would."""

    def __init__(self, sides: Sequence[SpaceBehind], candidates: MixedCandidates) -> None:
        """Read the verdicts, and call the judges that answer again."""
        self.sides = sides
        self.candidates = candidates
        self.tables = [side.verdicts(candidates.qids) for side in sides]
        self.decided = [side.decisions(candidates.qids) for side in sides]
        self.judges = [judge_again(side) for side in sides]
        self.words = [words_of(side) for side in sides]
        self.hashes = [side.option("filter", "wording") for side in sides]
        self.names = {qid: country.name for qid, country in by_qid().items()}

    def verdict_of(self, row: Row, concept: str, mixture: Mixture) -> str:
        """Say keep, remove, review or unknown."""
        config = self.candidates.configs.config_of("filter", concept, mixture)
        ruled = rule_verdict(row, config.concept if config else None)
        if ruled is not None:
            return ruled.verdict
        decided = self.decided[mixture.side_of_key(REVIEW)].get((row["qid"], concept))
        if decided is not None:
            return decided
        judge, words = mixture.side_of("model"), mixture.side_of("wording")
        question = self.question(row, concept, mixture, words)
        if question is None:
            return UNKNOWN
        client = self.judges[judge]
        if client is not None:
            return self.ask(client, question)
        return self.known(row, concept, question.data, judge, words)

    def question(self, row: Row, concept: str, mixture: Mixture, words: int) -> Request | None:
        """Write the question about a candidate; None where its words are no longer known."""
        text = self.words[words]
        if text is None and self.judges[mixture.side_of("model")] is not None:
            return None
        config = self.candidates.configs.config_of("filter", concept, mixture)
        roots = {root.qid: root.label for root in config.concept.roots} if config else {}
        labels = self.candidates.labels(row, mixture.side_of("dump"))
        return FilterQuestions(text or "", {**labels, **roots}, self.names).about(row)

    def ask(self, client: FreeClient, question: Request) -> str:
        """Ask somebody who says the same again."""
        try:
            (answered,) = ask_free(client, [question])
        except CultureKitError:
            return UNKNOWN
        return verdict_of(answered, model=client.model).verdict

    def may_have_changed_mind(self, qid: str, concept: str) -> bool:
        """Tell whether paid judges said two things of a candidate: to the same question they might have, too."""
        said = [table.get((qid, concept)) for table in self.tables]
        if any(client is not None for client in self.judges) or said[0] is None or said[1] is None:
            return False
        return said[0][0] != said[1][0] and all(each is not None and each[1].startswith(JUDGED) for each in said)

    def known(self, row: Row, concept: str, data: Mapping[str, object], judge: int, words: int) -> str:
        """Find the verdict of a judge who was asked just this, with these words."""
        for side in (judge, 1 - judge):
            if (judge_of(self.sides[side]), self.hashes[side]) != (judge_of(self.sides[judge]), self.hashes[words]):
                continue
            own = self.candidates.tables[side].get((row["qid"], concept))
            asked = None if own is None else self.question(own, concept, Mixture(side), side)
            if asked is not None and asked.data == data and (row["qid"], concept) in self.tables[side]:
                return self.tables[side][row["qid"], concept][0]
        return UNKNOWN


def judge_again(side: SpaceBehind) -> FreeClient | None:
    """Make the judge of a run, where he answers for nothing and always the same; None where he does not."""
    if judged_for_money(side):
        return None
    spec = parse_spec(str(side.option("filter", "judge")))
    if spec.name == "replay":
        replies = side.input_place("filter", "replies")
        if replies is None:
            return None
        spec = replace(spec, target=str(replies.parent if replies.name == FILE else replies))
    client = CLIENTS.make(str(spec))
    return client if isinstance(client, FreeClient) else None


def words_of(side: SpaceBehind) -> str | None:
    """Find the instructions that a run gave its judge: today's, or those it noted."""
    manifest = side.manifests["filter"]
    noted: Any = manifest.notes.get("wording")
    texts = [wording(), *(noted.values() if isinstance(noted, Mapping) else ())]
    wanted = side.option("filter", "wording")
    return next((text for text in texts if digest_bytes(text.encode()) == wanted), None)
