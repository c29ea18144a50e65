"""What a completion has added so far, known by name from then on, and taken back where it was wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from culturekit.builders.completing.completion_lookup import KnownItem, Standing
from culturekit.builders.completing.completion_names import artifact_slug
from culturekit.builders.completing.completion_questions import Cell, Proposal
from culturekit.builders.folded_names import folded, loose_key_of

__all__ = ["Additions", "ProposalRow"]


@dataclass(slots=True, eq=False)
class ProposalRow:
    """One proposal and what has become of it; `item` is what its name was found to mean, where that was found."""

    cell: Cell
    round: int
    position: int
    proposal: Proposal
    name: str
    outcome: str = ""
    reason: str = ""
    detail: str = ""
    artifact_id: str | None = None
    item: KnownItem | None = None
    aliases: tuple[str, ...] = ()
    set_aside: bool = False

    @property
    def id(self) -> str:
        """The cell, the round, and the place in the reply."""
        return f"{self.cell.id}/{self.round}/{self.position}"

    def as_checked(self) -> Proposal:
        """Give the proposal with those of its names that can be used."""
        return Proposal(self.name, list(self.aliases), self.proposal.kind, self.proposal.what)

    def end(self, outcome: str, reason: str = "", detail: str = "") -> None:
        """Say what became of it."""
        self.outcome, self.reason, self.detail = outcome, reason, detail


@dataclass(slots=True)
class Additions:
    """Artifacts and the countries they were added for; `rows` has the proposal behind each, by artifact and country."""

    rows: dict[tuple[str, str], dict[str, ProposalRow]] = field(default_factory=dict)
    items: dict[tuple[str, str], KnownItem] = field(default_factory=dict)
    minted: set[str] = field(default_factory=set)
    called: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def also(self, keys: Iterable[str], found: Sequence[KnownItem]) -> list[KnownItem]:
        """Put what was added by now into what the tables say of some names."""
        as_added = [self.current(item) for item in found]
        own = {key for name in keys for key in self.called.get(name, ()) if key in self.rows}
        new = [self.current(self.items[key]) for key in sorted(own)]
        listed = {(item.concept, item.qid) for item in as_added}
        return as_added + [item for item in new if (item.concept, item.qid) not in listed]

    def current(self, item: KnownItem) -> KnownItem:
        """Give an item of the tables as it stands now."""
        own = self.rows.get((item.concept or "", item.qid))
        if not own:
            return item
        gained = [row.cell.country.qids[0] for row in own.values()]
        return replace(item, standing="kept", country_qids=tuple(dict.fromkeys([*item.country_qids, *gained])))

    def namesake(self, name: str, concept: str) -> KnownItem | None:
        """Find an artifact of no graph that was added under the same name."""
        key = folded(name)
        ids = sorted(own for own in self.called.get(loose_key_of(name), ()) if own in self.rows and own[0] == concept)
        named = [self.items[own] for own in ids if key in self.items[own].names and self.items[own].qid in self.minted]
        return self.current(named[0]) if named else None

    def add(self, row: ProposalRow, item: KnownItem | None) -> None:
        """Add a verified proposal: a new artifact, or a country to one that is known."""
        concept, country = row.cell.concept.concept, row.cell.country
        if item is None:
            slug = artifact_slug(row.name, concept=concept, country=country.iso, taken=self.minted)
            self.minted.add(slug)
            names = frozenset(filter(None, map(folded, (row.name, *row.aliases))))
            item = KnownItem(slug, concept, row.name, row.proposal.what or None, names, (), (), "in the graph")
        key = (concept, item.qid)
        gains = item.concept == concept and item.standing == "kept"
        row.artifact_id = item.qid
        row.end("country added" if gains else "added")
        self.rows.setdefault(key, {})[country.iso] = row
        own_standing: Standing = item.standing if item.concept == concept else "in the graph"
        self.items.setdefault(key, replace(item, concept=concept, standing=own_standing))
        for name in set(map(loose_key_of, item.names)):
            own = self.called.setdefault(name, [])
            if key not in own:
                own.append(key)

    def take_back(self, row: ProposalRow, round_number: int) -> None:
        """Remove what the proposer says was wrong; an artifact without any country of its own is gone."""
        key = (row.cell.concept.concept, row.artifact_id or "")
        own = self.rows.get(key, {})
        own.pop(row.cell.country.iso, None)
        if not own:
            self.rows.pop(key, None)
        row.end("taken back", "taken back by the proposer", f"in round {round_number}")
