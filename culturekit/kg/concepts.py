"""Root-node configs: which classes a concept grows from, how far, and for which countries."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from culturekit.errors import UsageError
from culturekit.kg.concept_words import ConceptWords, Language, check_verified
from culturekit.kg.countries import OWN_FILE, by_qid, countries, not_in_use, whole_world
from culturekit.kg.qids import Qid
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.records.choices import CountryChoice, Ended, Ranks
from culturekit.storage.package_data import shipped, shipped_names
from culturekit.storage.yaml_model import StrictModel, closest, each_once, load_model, not_empty

__all__ = [
    "Concept",
    "CountryCode",
    "Exclusions",
    "Root",
    "concept_path",
    "load_concept",
    "load_concepts",
    "shipped_concepts",
    "with_hops",
]

FOLDER = "kg/concepts"


def check_country(code: str) -> str:
    """Accept the ISO code of a country that culturekit knows."""
    if code not in countries():
        if code in whole_world():
            raise ValueError(f"{not_in_use(code)}. {OWN_FILE}")
        raise ValueError(f"unknown country {code!r}{closest(code, sorted(countries()))}. {OWN_FILE}")
    if not countries()[code].qids:
        raise ValueError(f"no item is known of {code}: give qids to its entry in the file of countries")
    return code


def check_scope(scope: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Accept `all` where a walk can tell every country by an item, and a list with something in it, once each."""
    if scope != "all":
        each_once(not_empty(scope))
    lacking = [iso for iso, one in countries().items() if not one.qids] if scope == "all" else []
    if lacking:
        raise ValueError(
            f"no item is known of {len(lacking)} of all countries: {', '.join(lacking)}; give qids to their entries in "
            "the file of countries, or list the countries that are meant"
        )
    return scope


CountryCode = Annotated[str, AfterValidator(check_country)]
Hops = Annotated[int, Field(ge=1, le=40)]


class Root(StrictModel):
    """A class that a concept grows from."""

    qid: Qid
    label: str
    hops: Annotated[Hops | None, Field(description="As of the concept, where left out.")] = None
    expect: Annotated[
        tuple[int, int] | None, Field(description="A range of artifacts; outside of it comes a warning.")
    ] = None
    subconcept: Annotated[str | None, Field(description="Chooses the prompt template.")] = None


class Exclusions(StrictModel):
    """Classes that cut the walk, and items that are never artifacts."""

    classes: tuple[Qid, ...] = ()
    items: tuple[Qid, ...] = ()


class Concept(StrictModel):
    """A concept: its roots and the rules of the walk."""

    concept: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", description="Its name.")]
    hops: Annotated[Hops, Field(description="How far to walk from a root along inverse P31 and P279.")]
    roots: Annotated[tuple[Root, ...], AfterValidator(not_empty)]
    follow: Annotated[tuple[Literal["P31", "P279"], ...], Field(description="The properties that are walked.")] = (
        "P31",
        "P279",
    )
    country_properties: Annotated[
        tuple[Literal["P495", "P17"], ...], Field(description="An item that states one of them is an artifact.")
    ] = ("P495", "P17")
    countries: Annotated[
        Literal["all"] | tuple[CountryCode, ...],
        AfterValidator(check_scope),
        Field(description="ISO codes that limit the rows, or `all`.", validate_default=True),
    ] = "all"
    exclude: Exclusions = Exclusions()
    languages: Annotated[tuple[str, ...], Field(description="Whose scripts a name may be written in.")] = ("en",)
    ranks: Annotated[
        Ranks, Field(description="Statements that count; `truthy` are those of the best rank of item and property.")
    ] = "not-deprecated"
    ended: Annotated[Ended, Field(description="Whether statements with an end (P582) count.")] = "keep"
    country_choice: Annotated[
        CountryChoice, Field(description="`P495-first` takes P17 only where there is no P495.")
    ] = "union"
    expand_artifacts: Annotated[
        bool, Field(description="Whether the walk goes on below artifacts; in the paper it does not.")
    ] = False

    prompts: Annotated[
        Mapping[Language, ConceptWords],
        AfterValidator(check_verified),
        Field(description="Words of its prompts by language, where culturekit ships none."),
    ] = {}

    @property
    def codes(self) -> tuple[str, ...]:
        """The ISO codes of its countries."""
        return tuple(countries()) if self.countries == "all" else self.countries

    @property
    def edge_mask(self) -> int:
        """The bits of the class statements that count; see `statement_flags`."""
        return mask_of(self.follow, EDGE_PROPERTIES, ranks=self.ranks, ended=self.ended)

    @property
    def country_mask(self) -> int:
        """The bits of the statements of a country that count."""
        return mask_of(self.country_properties, COUNTRY_PROPERTIES, ranks=self.ranks, ended=self.ended)

    @property
    def limits(self) -> dict[int, int]:
        """How far to walk from each root, by its number; one that is given twice goes as far as it may in either."""
        limits: dict[int, int] = {}
        for root in self.roots:
            number = int(root.qid[1:])
            limits[number] = max(self.hops_of(root), limits.get(number, 0))
        return limits

    def hops_of(self, root: Root) -> int:
        """How far to walk from a root."""
        return root.hops or self.hops

    def codes_of(self, stated: Sequence[str]) -> list[str]:
        """List the ISO codes of stated countries that it is about, each once and in stated order."""
        known = by_qid()
        codes = dict.fromkeys(known[qid].iso for qid in stated if qid in known)
        return [iso for iso in codes if iso in self.codes]

    def subconcept_of(self, roots: list[str]) -> str | None:
        """Name the subconcept of what these roots reach: that of the first root, in config order, that has one."""
        return next((root.subconcept for root in self.roots if root.qid in roots and root.subconcept), None)


def with_hops(concept: Concept, hops: int | None) -> Concept:
    """Walk the same number of hops from every root, over what the config says; None changes nothing."""
    if hops is None:
        return concept
    roots = tuple(root.model_copy(update={"hops": None}) for root in concept.roots)
    return concept.model_copy(update={"hops": hops, "roots": roots})


def shipped_concepts() -> list[str]:
    """List the concepts that come with culturekit."""
    return shipped_names(FOLDER, ".yaml")


def concept_path(name: str) -> Path:
    """Find a shipped concept by name, or take a path as it is."""
    return shipped(f"{FOLDER}/{name}.yaml") if name in shipped_concepts() else Path(name)


def load_concept(name: str) -> Concept:
    """Load a concept by shipped name or by path."""
    return load_model(concept_path(name), Concept)


def load_concepts(names: Iterable[str]) -> tuple[Concept, ...]:
    """Load concepts, each under a name of its own: artifacts of one that stands twice would be written twice."""
    loaded = [(name, load_concept(name)) for name in names]
    for name, concept in loaded:
        same = [other for other, one in loaded if one.concept == concept.concept]
        if len(same) > 1:
            raise UsageError(
                f"two root configs are of the concept {concept.concept!r}", expected="each concept once",
                found=" and ".join(same), hint=f"Leave one out, or give {name} another name.",
            )  # fmt: skip
    return tuple(concept for _, concept in loaded)
