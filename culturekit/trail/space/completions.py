"""Rows that a model completed: what came of each proposal in either run, and what differs between the completions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.folded_names import folded
from culturekit.kg.countries import countries
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.factors import CAUSES, Factor
from culturekit.trail.space.mixtures import Mixture
from culturekit.trail.space.replay import Change, Replay, seen
from culturekit.trail.space.verdicts import UNKNOWN

__all__ = ["KIND", "Attribution", "Completions", "attribute"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What made a row another: what is shown to have, and what may have and cannot be told apart."""

    causes: tuple[Factor, ...] = ()
    undecided: tuple[Factor, ...] = ()


def attribute(
    change: Change, factors: Sequence[Factor], replay: Replay, actual: Sequence[Mapping[tuple[str, str, str], Any]]
) -> Attribution:
    """Find the causes of a change among what differs; `actual` are the rows of both spaces by key.

    Something is a cause where the first run with the second's in its place gives another row, or the second run with
    the first's. Where exchanging shows nothing, what differs is left undecided.
    """
    own = [factor for factor in factors if not factor.concept or factor.concept in {key[0] for key in change.keys}]
    if len(own) <= 1:
        return Attribution(tuple(own))
    plain = [Mixture(side) for side in (0, 1)]
    bases = [replay.outcome(change, mixture) for mixture in plain]
    expected = [tuple(seen(rows.get(key), change.part) for key in change.keys) for rows in actual]
    stuck = [factor for factor in own if not factor.replayable]
    if any(base not in (UNKNOWN, wanted) for base, wanted in zip(bases, expected, strict=True)):
        return not_reproduced(own, stuck)
    causes, unknown = [], []
    for factor in own:
        if not factor.replayable:
            continue
        swapped = [replay.outcome(change, Mixture(side, factor)) for side in (0, 1)]
        if any(other not in (UNKNOWN, base) for other, base in zip(swapped, expected, strict=True)):
            causes.append(factor)
        elif UNKNOWN in swapped:
            unknown.append(factor)
    asked = dict.fromkeys((key[2], key[0]) for key in change.keys)
    if causes and any(replay.verdicts.may_have_changed_mind(*each) for each in asked):
        known = {*causes, *unknown}
        unknown += [factor for factor in own if factor.cause == "model" and factor not in known]
    if causes or unknown:
        return Attribution(tuple(causes), tuple(unknown))
    return Attribution(undecided=tuple(own))


def not_reproduced(own: Sequence[Factor], stuck: Sequence[Factor]) -> Attribution:
    """Say what is behind a row that today's code does not give from what it was made of."""
    if len(stuck) == 1:
        return Attribution(tuple(stuck))
    return Attribution(undecided=tuple(stuck or own))


KIND = "completion"
COMPLETED = "LLM:"
ENTERED = frozenset({"added", "country added"})
WHO = ("judge", "model", "proposer", "verifier")
"""Options of a completion that say who is asked."""

PROPOSING, VERIFYING = "propos", "verif"
"""What the tasks of a completion are known by."""

SAME = "other answers to the same questions"

FILE = "proposals.parquet"
COLUMNS = ("concept", "country", "artifact_id", "round", "name", "outcome", "detail")

Key = tuple[str, str, str]


class Completions:
    """What the completions of two runs proposed of the artifacts that changed."""

    def __init__(self, sides: Sequence[SpaceBehind], changes: Sequence[Change]) -> None:
        """Read the proposals."""
        self.sides = sides
        self.stages = [side.manifests.get(KIND) for side in sides]
        cells = {(key[0], key[1]) for change in changes for key in change.keys}
        self.proposals = [
            proposals_of(side.folders[KIND] / FILE, cells) if KIND in side.folders else {} for side in sides
        ]
        self.cells: dict[tuple[str, str], bool] = {}

    def concern(self, change: Change) -> bool:
        """Tell whether a row is, on either side, one that a model proposed."""
        return any(
            key[2].startswith(COMPLETED) or any(own.get(key, {}).get("outcome") in ENTERED for own in self.proposals)
            for key in change.keys
        )

    def attribute(self, change: Change, factors: Sequence[Factor]) -> Attribution:
        """Find what the completion saw differently for this row; replies to other questions cannot be asked for again.

        `factors` are what differs before the completion; they count where the names of the row's cell are not the same.
        """
        own = {factor for factor in self.differences({key[0] for key in change.keys}) if self.reaches(factor, change)}
        if not self.proposed_on_both(change) and any(self.known_names_differ(key[0], key[1]) for key in change.keys):
            own |= {factor for factor in factors if not factor.concept or factor.concept in {k[0] for k in change.keys}}
        ordered = tuple(sorted(own, key=lambda factor: (CAUSES.index(factor.cause), factor.concept, factor.key)))
        if not ordered:
            return Attribution((Factor("model", SAME),))
        return Attribution(ordered) if len(ordered) == 1 else Attribution(undecided=ordered)

    def proposed_on_both(self, change: Change) -> bool:
        """Tell whether both runs proposed an artifact: then it is its verification that ended otherwise."""
        return all(any(self.proposal(side, key) for key in change.keys) for side in (0, 1))

    def proposal(self, side: int, key: Key) -> Mapping[str, Any] | None:
        """Find the proposal of an artifact in a run; one that did not enter has no identifier, and is known by name."""
        own, other = self.proposals[side], self.proposals[1 - side].get(key)
        if key in own or other is None:
            return own.get(key)
        return own.get((key[0], key[1], folded(other["name"])))

    def reaches(self, factor: Factor, change: Change) -> bool:
        """Tell whether words can be behind a row: those of the proposal, those of its verification, or both.

        What a later round proposes answers to what the verification made of the rounds before.
        """
        if factor.cause != "wording":
            return True
        if self.proposed_on_both(change):
            return PROPOSING not in factor.key
        found = [self.proposal(side, key) for side in (0, 1) for key in change.keys]
        return VERIFYING not in factor.key or max((row["round"] for row in found if row), default=1) > 1

    def differences(self, concepts: Iterable[str]) -> Iterator[Factor]:
        """Compare the two completions: options, words, who was asked, version."""
        before, after = self.stages
        if before is None or after is None:
            if (before is None) != (after is None):
                yield Factor("config", "completion")
            return
        if before.version != after.version:
            yield Factor("code", KIND)
        for name in sorted({*before.options, *after.options}):
            a, b = before.options.get(name), after.options.get(name)
            if a != b:
                yield from option_factors(name, a, b, concepts)
        replies = [{r: i.sha256 for r, i in stage.inputs.items() if "repl" in r} for stage in (before, after)]
        if replies[0] != replies[1]:
            yield Factor("model", KIND)

    def known_names_differ(self, concept: str, country: str) -> bool:
        """Tell whether the completions were told other names of a cell."""
        if (concept, country) not in self.cells:
            names = [names_of(side, concept, country) for side in self.sides]
            self.cells[concept, country] = names[0] != names[1]
        return self.cells[concept, country]

    def lines(self, change: Change) -> Iterator[str]:
        """Say what became of the proposal in either run."""
        for key in dict.fromkeys(change.keys):
            said = [proposal_text(self.proposal(side, key)) for side in (0, 1)]
            yield f"completion: {key[2]} in {key[0]}, {key[1]}: {said[0]} -> {said[1]}"


def option_factors(name: str, before: Any, after: Any, concepts: Iterable[str]) -> Iterator[Factor]:  # noqa: ANN401
    """Say what an option that differs is about."""
    if "wording" in name:
        both = [value if isinstance(value, Mapping) else {name: value} for value in (before, after)]
        for file in sorted({*both[0], *both[1]}):
            if both[0].get(file) != both[1].get(file):
                yield Factor("wording", str(file))
    elif name in WHO:
        yield Factor("model", KIND)
    elif name == "concepts":
        for concept in sorted(concepts):
            a, b = (value.get(concept) or {} for value in (before or {}, after or {}))
            for key in sorted({*a, *b}):
                if a.get(key) != b.get(key):
                    yield Factor("config", f"{concept}.{key}", concept)
    else:
        yield Factor("config", f"{KIND}.{name}")


def names_of(side: SpaceBehind, concept: str, country: str) -> set[str]:
    """Name what the filter kept of a cell: the completion is told so much of what is there."""
    qids = [qid for known in countries().values() if known.iso == country for qid in known.qids]
    stated = pl.col("country_qids").list.eval(pl.element().is_in(qids)).list.any()
    rows = pl.scan_parquet(side.folders["filter"] / "kept.parquet").filter(pl.col("concept") == concept, stated)
    return set(rows.select("label").collect()["label"])


def proposals_of(file: Path, cells: Iterable[tuple[str, str]]) -> dict[Key, Mapping[str, Any]]:
    """Read what became of the proposals of some cells, by identifier and by folded name: what entered, or the last."""
    wanted = pl.LazyFrame(sorted(set(cells)), schema={"concept": pl.String, "country": pl.String}, orient="row")
    rows = pl.scan_parquet(file).select(COLUMNS).join(wanted, on=["concept", "country"], how="semi")
    found: dict[Key, Mapping[str, Any]] = {}
    for row in rows.collect().sort("round", "name", maintain_order=True).iter_rows(named=True):
        for known_by in filter(None, (row["artifact_id"], folded(row["name"]))):
            place = (row["concept"], row["country"], known_by)
            if place not in found or found[place]["outcome"] not in ENTERED:
                found[place] = row
    return found


def proposal_text(row: Mapping[str, Any] | None) -> str:
    """Write what became of a proposal."""
    if row is None:
        return "not proposed"
    detail = f" ({row['detail']})" if row["detail"] else ""
    return f"{row['outcome']} in round {row['round']}{detail}"
