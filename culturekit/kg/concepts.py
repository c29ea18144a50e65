"""Root-node configs: which classes a concept grows from, how far, and for which countries."""

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import polars as pl
from pydantic import AfterValidator, Field

from culturekit.core.choices import CountryChoice, Ended, Ranks
from culturekit.core.declared import Typed
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.yaml_source import (
    StrictModel,
    closest,
    each_once,
    load_model,
    not_empty,
    past_day,
    read_yaml,
    validate,
)
from culturekit.kg.countries import (
    OWN_FILE,
    QID,
    Qid,
    by_qid,
    countries,
    country,
    not_in_use,
    use_countries_of_recipe,
    whole_world,
)

# The words in which prompts speak of a concept: templates, and what is wrong with one.

ENGLISH = "en"
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]

UNVERIFIED = "nobody has verified this translation; a speaker adds `verified: {by: NAME, on: YEAR-MONTH-DAY}`"

TemplatePart = Literal["artifact", "underspecified", "within_country"]
_FIELDS: Mapping[TemplatePart, frozenset[str]] = {
    "artifact": frozenset({"name", "country", "adjective"}),
    "underspecified": frozenset({"concept"}),
    "within_country": frozenset({"country", "adjective", "concept"}),
}


def template_problems(part: TemplatePart, texts: Iterable[str]) -> list[str]:
    """List what stands in templates that cannot be filled in, or is missing from them."""
    problems = []
    for text in texts:
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            problems.append(f"{text!r} cannot be filled in: {error}")
            continue
        named = {name for _, name, _, _ in parsed if name is not None}
        odd = sorted(named - _FIELDS[part])
        if odd or any(spec or conversion for _, _, spec, conversion in parsed):
            accepted = ", ".join(sorted(_FIELDS[part]))
            problems.append(f"{text!r} asks for {', '.join(odd) or 'a format'}; accepted: {accepted}")
        if part == "artifact" and "name" not in named:
            problems.append(f"{text!r} does not name the artifact")
        if part == "within_country" and not named & {"country", "adjective"}:
            problems.append(f"{text!r} does not name the country")
        if not re.search(r"\w", text):
            problems.append("an empty template")
    return problems


def _check_templates(part: TemplatePart) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Make a check that refuses templates with all that is wrong with them."""

    def check(texts: tuple[str, ...]) -> tuple[str, ...]:
        if problems := template_problems(part, texts):
            raise ValueError("; ".join(problems))
        return texts

    return check


_Named = Annotated[str, AfterValidator(lambda text: _check_templates("artifact")((text,))[0])]


class Verified(StrictModel):
    """Who checked a translation, and when."""

    by: Annotated[str, Field(min_length=1)]
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(past_day)]


class ConceptWords(StrictModel):
    """How prompts of one language speak of a concept."""

    artifact: Annotated[
        _Named | None,
        Field(description="Names an artifact: {name}, and {country} or {adjective}, as in `A photo of {name}, …`."),
    ] = None
    subconcepts: Annotated[
        Mapping[str, _Named], Field(description="The same for artifacts of a subconcept, by its name.")
    ] = {}
    underspecified: Annotated[
        tuple[str, ...],
        AfterValidator(_check_templates("underspecified")),
        Field(description="Leave artifact and country open."),
    ] = ()
    within_country: Annotated[
        tuple[str, ...],
        AfterValidator(_check_templates("within_country")),
        Field(description="Name {country} or {adjective} alone."),
    ] = ()
    verified: Annotated[Verified | None, Field(description="Who checked words that are not English, and when.")] = None

    def artifact_templates(self, concept: str) -> Mapping[str, str]:
        """Give the templates that name an artifact, by concept, or concept and subconcept."""
        general = {} if self.artifact is None else {concept: self.artifact}
        return general | {f"{concept}/{name}": text for name, text in self.subconcepts.items()}


def _check_verified(words: Mapping[str, ConceptWords]) -> Mapping[str, ConceptWords]:
    """Refuse words in another language that no speaker has verified."""
    unverified = sorted(language for language, each in words.items() if language != ENGLISH and each.verified is None)
    if unverified:
        raise ValueError(f"{', '.join(unverified)}: {UNVERIFIED}")
    return words


# How a statement is made, in one bit, so that a walk can choose which statements count.
#
# Each property has six kinds of statements: of best rank, of another rank that is not deprecated, deprecated; and
# each of these with or without an end (qualifier P582). An edge or a node carries the bits of all its statements.

EDGE_PROPERTIES = ("P31", "P279")
COUNTRY_PROPERTIES = ("P495", "P17")
# The properties whose values are items, and which the graph keeps.
ENTITY_STATEMENTS = ("P31", "P279", "P495", "P17", "P2012", "P361")

_BEST, _OTHER, _DEPRECATED = range(3)
_ALLOWED = {"truthy": (_BEST,), "not-deprecated": (_BEST, _OTHER), "all": (_BEST, _OTHER, _DEPRECATED)}
_KINDS = 6


def mask_of(
    properties: Sequence[str], family: Sequence[str], *, ranks: Ranks = "not-deprecated", ended: Ended = "keep"
) -> int:
    """Give the bits of the statements that count; `family` is EDGE_PROPERTIES or COUNTRY_PROPERTIES."""
    return sum(
        1 << (_KINDS * family.index(name) + 2 * rank + end)
        for name in properties
        for rank in _ALLOWED[ranks]
        for end in range(2 if ended == "keep" else 1)
    )


def flags_of(statements: pl.DataFrame, family: Sequence[str]) -> pl.DataFrame:
    """Give the statements of a family of properties that have a value: number, value and flags (u16).

    The best rank of an item for a property is `preferred` where any statement has it, also one without a value.
    """
    rows = statements.filter(pl.col("property").is_in(list(family)))
    # Few items prefer any statement, so that these are searched for, and not all grouped.
    preferred = rows.filter(pl.col("rank") == "preferred").select("number", "property", preference=True).unique()
    if preferred.is_empty():
        rows = rows.with_columns(preference=False)
    else:
        rows = rows.join(preferred, on=["number", "property"], how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("preference").fill_null(value=False))
    rank = (
        pl.when(pl.col("rank") == "deprecated")
        .then(_DEPRECATED)
        .when((pl.col("rank") == "preferred") | ~pl.col("preference"))
        .then(_BEST)
        .otherwise(_OTHER)
    )
    number = pl.col("property").replace_strict({name: n for n, name in enumerate(family)}, return_dtype=pl.UInt16)
    kind = number * _KINDS + 2 * rank.cast(pl.UInt16) + pl.col("ended").cast(pl.UInt16)
    bits = pl.lit(2, pl.UInt32).pow(kind).cast(pl.UInt16)
    return rows.select("number", "value", flags=bits).filter(pl.col("value").is_not_null())


def is_truthy() -> pl.Expr:
    """Tell which of all statements of some items are of the best rank of their item and property."""
    preferred = pl.col("rank") == "preferred"
    return preferred | ((pl.col("rank") == "normal") & ~preferred.any().over("number", "property"))


def _check_country(code: str) -> str:
    """Accept the ISO code of a country that culturekit knows."""
    if code not in countries():
        if code in whole_world():
            raise ValueError(f"{not_in_use(code)}. {OWN_FILE}")
        raise ValueError(f"unknown country {code!r}{closest(code, sorted(countries()))}. {OWN_FILE}")
    if not countries()[code].qids:
        raise ValueError(f"no item is known of {code}: give qids to its entry in the file of countries")
    return code


def _check_scope(scope: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Accept `all` where a walk can tell every country by an item, and a list with something in it, once each."""
    if scope != "all":
        return each_once(not_empty(scope))
    lacking = [iso for iso, one in countries().items() if not one.qids]
    if lacking:
        raise ValueError(
            f"no item is known of {len(lacking)} of all countries: {', '.join(lacking)}; give qids to their entries in "
            "the file of countries, or list the countries that are meant"
        )
    return scope


CountryCode = Annotated[str, AfterValidator(_check_country)]
_Hops = Annotated[int, Field(ge=1, le=40)]


class Root(StrictModel):
    """A class that a concept grows from."""

    qid: Qid
    label: str
    hops: Annotated[_Hops | None, Field(description="As of the concept, where left out.")] = None
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
    description: Annotated[
        str | None, Field(description="What belongs to it, in a sentence or two, for the judge.", max_length=600)
    ] = None
    hops: Annotated[_Hops, Field(description="How far to walk from a root along inverse P31 and P279.")]
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
        AfterValidator(_check_scope),
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
        AfterValidator(_check_verified),
        Field(description="Words of its prompts by language, where culturekit ships none."),
    ] = {}

    @property
    def codes(self) -> tuple[str, ...]:
        """The ISO codes of its countries."""
        return tuple(countries()) if self.countries == "all" else self.countries

    @property
    def scope(self) -> frozenset[int] | None:
        """The numbers of its countries' items; None where all are in scope."""
        if self.countries == "all":
            return None
        return frozenset(int(qid[1:]) for iso in self.countries for qid in country(iso).qids)

    @property
    def edge_mask(self) -> int:
        """The bits of the class statements that count; see `mask_of`."""
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

    @property
    def excluded_classes(self) -> frozenset[int]:
        """The numbers of the classes that cut the walk."""
        return frozenset(int(qid[1:]) for qid in self.exclude.classes)

    @property
    def excluded_items(self) -> frozenset[int]:
        """The numbers of the items that are never artifacts."""
        return frozenset(int(qid[1:]) for qid in self.exclude.items)

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


_FOLDER = "kg/concepts"


def shipped_concepts() -> list[str]:
    """List the concepts that come with culturekit."""
    return shipped_names(_FOLDER, ".yaml")


_SCOPE = "?countries="  # after the name of a root config, in place of its countries


def concept_path(name: str) -> Path:
    """Find a shipped concept by name, or take a path as it is; countries named after it are no part of it."""
    name = name.partition(_SCOPE)[0]
    return shipped(f"{_FOLDER}/{name}.yaml") if name in shipped_concepts() else Path(name)


def load_concept(name: str) -> Concept:
    """Load a concept by shipped name or by path; `art?countries=KE,BE` is about other countries than the file says.

    `all` are those of the whole world, `cultivate` those that a scheme of groups has.
    """
    concept, stated = load_model(concept_path(name), Concept), name.partition(_SCOPE)[2]
    return concept.model_copy(update={"countries": _scope_of(stated)}) if stated else concept


def _scope_of(stated: str) -> str | tuple[str, ...]:
    """Read countries; where no file in use has them, the table of the world is used."""
    scheme = tuple(iso for iso, one in countries().items() if stated in one.groups)
    codes = scheme or tuple(word.strip().upper() for word in stated.split(","))
    wanted = set(whole_world()) if stated == "all" else set(codes) & set(whole_world())
    if not wanted <= set(countries()):
        use_countries_of_recipe(Path("world"))
    try:
        return _check_scope("all" if stated == "all" else tuple(map(_check_country, codes)))
    except ValueError as error:
        raise UsageError("no such countries", found=stated, expected="ISO codes, `all` or `cultivate`",
                         hint=str(error)) from error  # fmt: skip


def load_concepts(names: Iterable[str]) -> tuple[Concept, ...]:
    """Load concepts, each under another name: artifacts of one that stands twice would be written twice."""
    loaded = [(name, load_concept(name)) for name in names]
    for name, concept in loaded:
        same = [other for other, one in loaded if one.concept == concept.concept]
        if len(same) > 1:
            raise UsageError(
                f"two root configs are of the concept {concept.concept!r}", expected="each concept once",
                found=" and ".join(same), hint=f"Leave one out, or give {name} another name.",
            )  # fmt: skip
    return tuple(concept for _, concept in loaded)


Roots: TypeAlias = Annotated[
    tuple[Concept, ...],
    Field(
        description="Root config: a YAML file, or a shipped concept; `art?countries=KE,BE`, `all` or `cultivate` is of "
        "these countries. Repeatable."
    ),
    Typed("roots", gather=load_concepts),
]


@dataclass(frozen=True, slots=True)
class RootChoice:
    """The root configs that a command walks, and rules over those of all of them."""

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
        """Give the concepts, these rules in the place of theirs."""
        stated = {name: getattr(self, name) for name in ("ranks", "ended", "country_choice", "expand_artifacts")}
        over = {name: rule for name, rule in stated.items() if rule is not None}
        return [with_hops(concept, self.hops).model_copy(update=over) for concept in self.roots]

    def heirs(self) -> Mapping[int, int]:
        """Load which country stands for which; none without a file."""
        return {} if self.successors is None else load_successors(self.successors)


_HEADER = ("qid", "target")


def read_redirects(path: Path) -> Mapping[str, str]:
    """Read `qid,target` lines, separated by comma or tab; a first line with these two words is a header."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file of redirects", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
    targets: dict[str, str] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        cells = tuple(cell.strip() for cell in line.replace("\t", ",").split(","))
        if cells in {("",), _HEADER}:
            continue
        if len(cells) != 2 or not all(QID.match(cell) for cell in cells):
            problems.append(Problem(f"a redirect is two QIDs, found {line[:80]!r}", str(path), number))
        elif targets.setdefault(*cells) != cells[1]:
            message = f"{cells[0]} is redirected twice, to {targets[cells[0]]} and to {cells[1]}"
            problems.append(Problem(message, str(path), number))
    if problems:
        raise ConfigError(problems)
    if not targets:
        raise UsageError("the file has no redirects", where=str(path), expected="lines such as Q1,Q2", found="none")
    return targets


def final_target(qid: str, redirects: Mapping[str, str]) -> str:
    """Follow redirects to their end; of a circle, give the last before it closes."""
    seen = {qid}
    while redirects.get(qid, qid) not in seen:
        qid = redirects[qid]
        seen.add(qid)
    return qid


class _SuccessorFile(StrictModel):
    """The file as a whole."""

    successors: dict[Qid, Qid]


def load_successors(path: Path) -> Mapping[int, int]:
    """Read which country stands for which, by QID number, chains followed to their end; circles are refused."""
    source = read_yaml(path)
    stated = validate(source, _SuccessorFile).successors
    last = {qid: final_target(qid, stated) for qid in stated}
    problems = []
    for qid, target in last.items():
        if target in stated:
            position = source.position(("successors", qid))
            message = "no last successor: the chain comes back to itself"
            problems.append(Problem(message, position.where, position.line, f"successors.{qid}"))
    if problems:
        raise ConfigError(problems)
    return {int(qid[1:]): int(target[1:]) for qid, target in last.items()}
