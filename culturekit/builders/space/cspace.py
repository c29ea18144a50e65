"""The cultural space: one row per artifact and country, released from what the filter kept and the completion found."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

import polars as pl
from pydantic import Field

from culturekit.builders import popularity
from culturekit.builders.country_names import NAMES
from culturekit.builders.popularity import PopularitySource
from culturekit.builders.prompt_templates import TEMPLATES, Wording, artifact_words
from culturekit.builders.space.checked import carry_check
from culturekit.builders.space.public_cube import ROWS_AT_ONCE, public_rows, statements_of, write_public
from culturekit.builders.space.space_files import import_foreign, import_prompts, import_space, is_typed
from culturekit.core.atomic import explained_outside, write_atomically
from culturekit.core.choices import TRIPLE_SUFFIXES, Included, PromptKind, ReleaseFormat
from culturekit.core.declared import Typed
from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UsageError, counted
from culturekit.core.package_data import shipped
from culturekit.core.registry import needing
from culturekit.core.schemas import CSPACE, KEPT
from culturekit.core.spreadsheet_cells import export_frame
from culturekit.core.stage import UNDER_REVIEW, Outcome, Stage, Work
from culturekit.core.table import Table
from culturekit.core.tables import read_table, save_parquet, table_outcome, write_drops, write_table
from culturekit.kg.concepts import Concept, Roots
from culturekit.kg.countries import (
    CARRIED,
    QID,
    WORLD,
    by_qid,
    countries,
    countries_text,
    country_files,
    own_countries,
    use_countries_beside,
)

# The files of a release: the space as a whole and by concept, in each form, and the checksums of all.

SPLITS = "splits"
SUMS = "SHA256SUMS"
PUBLIC = "cube.json"


def read_formats(text: str) -> tuple[ReleaseFormat, ...]:
    """Read the forms of a release, divided by commas; each counts once, in the order of the list below."""
    known: tuple[ReleaseFormat, ...] = get_args(ReleaseFormat)
    stated = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = sorted(set(stated) - set(known))
    if unknown or not stated:
        raise UsageError("not a form of a release", expected=" or ".join(known), found=", ".join(unknown) or repr(text))
    return tuple(form for form in known if form in stated)


def check_formats(formats: Sequence[ReleaseFormat]) -> None:
    """Make sure that the package that writes triples is there, where they are asked for."""
    if any(form in TRIPLE_SUFFIXES for form in formats):
        with needing("kg", "a release in triples"):
            import culturekit.builders.space.space_triples  # noqa: F401


def write_release_files(
    out: Path, space: pl.DataFrame, kept: pl.DataFrame, formats: Sequence[ReleaseFormat]
) -> dict[str, int]:
    """Write the space, in key order, in more forms beside `cspace.parquet`, and split by concept."""
    if not formats:
        return {}
    folder = out / SPLITS
    folder.mkdir(exist_ok=True)
    concepts = space["concept"].unique().sort().to_list()
    for concept in concepts:
        rows = space.filter(pl.col("concept") == concept)
        if "parquet" in formats:
            save_parquet(rows, folder / f"{concept}.parquet")
        write_forms(rows, folder / f"{concept}.parquet", formats)
    write_forms(space, out / "cspace.parquet", formats)
    counts = {"splits": len(concepts)}
    if "public" in formats:
        counts["public_rows"] = write_public(out / PUBLIC, public_layout(space, kept))
    paths = sorted(path for path in out.rglob("*") if path.is_file() and path.name != SUMS)
    lines = [f"{digest_file(path)}  {path.relative_to(out).as_posix()}\n" for path in paths]
    write_atomically(out / SUMS, "".join(lines).encode("utf-8"))  # as `sha256sum --check` reads them
    return counts


def write_forms(space: pl.DataFrame, parquet: Path, formats: Sequence[ReleaseFormat]) -> None:
    """Write a table in the plain forms beside its file."""
    for form in ("jsonl", "csv"):
        if form in formats:
            export_frame(space, parquet.with_suffix(f".{form}"))
    if any(form in TRIPLE_SUFFIXES for form in formats):
        from culturekit.builders.space.space_triples import space_triples

        for form, suffix in TRIPLE_SUFFIXES.items():
            if form in formats:
                write_atomically(parquet.with_suffix(suffix), space_triples(space, form))


def public_layout(space: pl.DataFrame, kept: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Give the rows of the public layout, each with the released prompt that names its artifact."""
    wording = Wording("released")
    for part in space.iter_slices(ROWS_AT_ONCE):
        known = kept.join(part, left_on=["concept", "qid"], right_on=["concept", "artifact_id"], how="semi")
        yield public_rows(part, artifact_words(part, wording)["text"], statements_of(known))


NO_COUNTRY = "no country that countries.yaml knows"
WAITS = "waits for review"
SOURCES = ("wikidata", "llm")


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """Whose artifacts are released, by what they are rated, and in which forms they are written."""

    roots: Roots
    popularity: Annotated[
        str,
        Field(
            description="Where popularity comes from, as a SPEC: `sitelinks`, `pageviews?contact=ADDRESS` or "
            "`google_cse:FOLDER` (Google ends its service on 2027-01-01)."
        ),
    ] = "sitelinks"
    formats: Annotated[
        tuple[ReleaseFormat, ...],
        Field(description="Forms of the cultural space besides its table, split by concept."),
        Typed(
            "format",
            once=True,
            help="Forms to write, divided by commas: parquet, jsonl, csv, public, ntriples, turtle, json-ld.",
        ),
    ] = ("parquet",)
    include: Annotated[
        Included | None,
        Field(description="`review` releases what waits for a person, too; manifest, card and report count it."),
    ] = None


def release(
    work: Work,
    kept_paths: Sequence[Path],
    concepts: Sequence[Concept],
    popularity: PopularitySource,
    formats: Sequence[ReleaseFormat] = (),
    *,
    include: Collection[Included] = (),
) -> Outcome:
    """Write the cultural space, in all forms asked for, and what could not enter it: what nobody kept, among others."""
    check_formats(formats)
    by_name = {concept.concept: concept for concept in concepts}
    rows, twice = gathered(kept_paths, list(by_name))
    taken = pl.col("verdict").is_in(["keep", *include])
    kept, held = rows.filter(taken), rows.filter(~taken)
    partly = waiting_beside(kept)
    if not include:
        kept, held = kept.with_columns(NO_WAITING), pl.concat([held, partly])
    work.progress.begin(kept.height, "artifacts")
    space = pl.concat([artifact_rows(kept, concept, popularity.name) for concept in by_name.values()])
    work.progress.advance(kept.height)
    homeless = kept.join(space, left_on=["concept", "qid"], right_on=["concept", "artifact_id"], how="anti")
    if space.is_empty() and held.is_empty():
        raise empty(kept_paths, list(by_name), kept.height, homeless.height)
    with explained_outside(f"the source of popularity {popularity.name}"):
        ratings = popularity.rate(space, work)
    space = space.with_columns(popularity=ratings.values).drop(list(RATED_BY)).sort(CSPACE.key, maintain_order=True)
    nowhere = dropped(homeless, pl.lit(NO_COUNTRY), pl.col("country_qids").list.join(" "))
    other = pl.format("the verdict is {}, not keep: {}", "verdict", "reason")
    reason = pl.when(verdict="review").then(pl.format(WAITS + ": {}", "reason")).otherwise(other)
    not_kept = dropped(held.join(homeless, on=["concept", "qid"], how="anti"), reason, pl.col("label"))
    drops = pl.concat([nowhere, not_kept])
    write_table(work.out, CSPACE, space)
    if added := own_countries(space["country"].unique()):
        write_atomically(work.out / CARRIED, countries_text(added).encode())
    reasons = write_drops(work.out, drops)
    counts = {"cspace": space.height, "artifacts": space["artifact_id"].n_unique(), "drops": drops.height}
    counts |= write_release_files(work.out, space, kept, formats)
    notes = {**ratings.notes, **({"rows in several tables": twice} if twice else {})}
    findings = with_waiting(notes, held)
    if space.is_empty() and "findings" not in findings:
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        findings = {**findings, "findings": [f"nothing was released: {why}"]}
    return Outcome(counts, reasons, {**findings, **taken_in(space, pl.concat([kept, partly]) if include else kept)})


ORDER = {"country_order": pl.UInt16()}
# What popularity is read from, and what leaves the table again.
RATED_BY = {"sitelinks": pl.UInt16(), "title": pl.String(), "languages": pl.List(pl.String())}
NO_WAITING = pl.lit([], pl.List(pl.String)).alias("waiting_qids")


def waiting_beside(kept: pl.DataFrame) -> pl.DataFrame:
    """Give the waiting countries of artifacts that are kept for others of theirs, with that verdict."""
    rows = kept.filter(verdict="keep").filter(pl.col("waiting_qids").list.len() > 0)
    return rows.with_columns(
        NO_WAITING, country_qids="waiting_qids", verdict=pl.lit("review"),
        reason=pl.format("{}: undecided for some of its countries", "reason"),
    )  # fmt: skip


def gathered(paths: Sequence[Path], concepts: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Read one or more tables of kept candidates; a row of several is the first one with the countries of all.

    A table without a column `source` has what Wikidata has.
    """
    blank = {"source": pl.lit(SOURCES[0]), "reviewer": pl.lit(None, pl.String), "waiting_qids": NO_WAITING}
    frames = []
    for path in paths:
        frame = read_table(path, KEPT).filter(pl.col("concept").is_in(concepts))
        frame = frame.with_columns(**{name: cell for name, cell in blank.items() if name not in frame.columns})
        odd = frame.filter(~pl.col("source").is_in(SOURCES))
        if odd.height:
            raise IntegrityError(
                "an artifact of unknown source", where=str(path), expected=" or ".join(SOURCES), found=odd["source"][0]
            )
        frames.append(frame.select(*KEPT.schema, *blank))
    whole = pl.concat(frames).with_columns(waiting_qids=pl.col("waiting_qids").list.set_difference("country_qids"))
    if len(frames) == 1:
        return whole, 0
    key = ["concept", "qid"]
    lists = ("country_qids", "waiting_qids")
    once = whole.unique(key, keep="first", maintain_order=True).drop(*lists, "verdict", "reason")
    joined = once.join(strictest(whole, key), on=key, how="left")
    for name in lists:
        stated = whole.select(*key, name).explode(name).drop_nulls()
        united = stated.unique(maintain_order=True).group_by(key, maintain_order=True).agg(name)
        joined = joined.join(united, on=key, how="left").with_columns(pl.col(name).fill_null([]))
    joined = joined.with_columns(waiting_qids=pl.col("waiting_qids").list.set_difference("country_qids"))
    return joined.select(whole.columns).sort(key), whole.height - once.height


def strictest(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Give one verdict for each artifact of several tables: a person's, else any but keep, so that nothing slips by."""
    standing = pl.when(pl.col("reviewer").is_not_null()).then(0).when(pl.col("verdict") != "keep").then(1).otherwise(2)
    ordered = rows.sort(standing, maintain_order=True)
    return ordered.unique(key, keep="first", maintain_order=True).select(*key, "verdict", "reason")


def artifact_rows(kept: pl.DataFrame, concept: Concept, source: str) -> pl.DataFrame:
    """Give a row for each country in scope; the first stated country comes with order 0."""
    rows = kept.filter(pl.col("concept") == concept.concept).with_row_index("at")
    codes = {qid: country.iso for qid, country in by_qid().items()}
    inside = pl.lit(True) if concept.countries == "all" else pl.col("country").is_in(list(concept.countries))
    stated = [
        rows.select("at", "verdict", qid="country_qids"),
        rows.select("at", qid="waiting_qids", verdict=pl.lit("review")).select("at", "verdict", "qid"),
    ]
    placed = (
        pl.concat(stated)
        .sort("at", maintain_order=True)
        .explode("qid")
        .with_columns(country=pl.col("qid").replace_strict(codes, default=None, return_dtype=pl.String))
        .drop_nulls("country")
        .filter(inside)
        .unique(["at", "country"], keep="first", maintain_order=True)
        .select("at", "country", "verdict", country_order=pl.int_range(pl.len(), dtype=pl.UInt16).over("at"))
    )
    subconcepts = [
        pl.when(pl.col("roots").list.contains(root.qid)).then(pl.lit(root.subconcept))
        for root in concept.roots
        if root.subconcept
    ]
    names = {iso: country.name for iso, country in countries().items()}
    continents = {iso: country.continent for iso, country in countries().items()}
    whole = placed.join(rows.drop("verdict"), on="at", how="left", maintain_order="left").with_columns(
        artifact_id=pl.col("qid"),
        qid=pl.when(pl.col("qid").str.contains(QID.pattern.replace(r"\Z", "$"))).then("qid"),
        name=pl.col("label"),
        subconcept=pl.coalesce([*subconcepts, pl.lit(None, dtype=pl.String)]),
        country_name=pl.col("country").replace_strict(names, return_dtype=pl.String),
        continent=pl.col("country").replace_strict(continents, return_dtype=pl.String),
        popularity=pl.lit(None, dtype=pl.Float64),
        popularity_source=pl.lit(source),
        languages=pl.lit(list(concept.languages), dtype=pl.List(pl.String)),
    )
    return whole.select(*CSPACE.schema, *ORDER, "verdict", *RATED_BY)


def dropped(rows: pl.DataFrame, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    """Write artifacts that have no row as drops."""
    written = rows.with_columns(dropped_because=reason, detail=detail)
    return written.select("concept", "detail", key="qid", stage=pl.lit("release"), reason="dropped_because")


def with_waiting(notes: Mapping[str, object], held: pl.DataFrame) -> Mapping[str, object]:
    """Add to what is to be looked at how many artifacts wait for a person, and why."""
    waiting = Counter(held.filter(verdict="review")["reason"])
    if not waiting:
        return notes
    why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(waiting.items()))
    artifacts = counted(waiting.total(), "artifacts", verb="wait")
    how = (
        "`culturekit cspace review export` makes their sheet; `--include review`, or `include: review` in a recipe, "
        "releases them as they are"
    )
    found = notes.get("findings")
    before = found if isinstance(found, list) else []
    return {**notes, "findings": [*before, f"{artifacts} for a person to look at, in drops.parquet ({why}); {how}"]}


def taken_in(space: pl.DataFrame, kept: pl.DataFrame) -> Mapping[str, object]:
    """Count, by reason, the artifacts that are in a space although they wait for a person."""
    inside = kept.filter(verdict="review").join(
        space, left_on=["concept", "qid"], right_on=["concept", "artifact_id"], how="semi"
    )
    if not inside.height:
        return {}
    artifacts = counted(inside.height, "artifacts")
    return {
        UNDER_REVIEW: dict(sorted(Counter(inside["reason"]).items())),
        "caveat": f"The cultural space holds {artifacts} that nobody kept and that a person has yet to look at.",
    }


def empty(paths: Sequence[Path], concepts: Sequence[str], kept: int, homeless: int) -> UsageError:
    """Say that nothing would be released, and why that may be."""
    return UsageError(
        "the cultural space would be empty",
        where=" and ".join(map(str, paths)),
        expected=f"a kept artifact of {', '.join(concepts)} in a country that is asked for",
        found=f"{kept} kept candidates, {homeless} of them in no known country",
        hint="Ask for more countries or concepts; drops.parquet beside the kept candidates says what was left out.",
    )


def release_stage(kept: Sequence[Path], options: ReleaseOptions, checked: Path | None = None) -> Stage:
    """Release the cultural space from tables of kept candidates; `checked` is what people found of a sample of them."""
    source, formats = popularity.SOURCES.make(options.popularity), options.formats
    include = [] if options.include is None else [options.include]
    tables = {"kept" if number == 1 else f"kept-{number:02}": path for number, path in enumerate(kept, 1)}
    wording = {"templates": shipped(TEMPLATES)} if "public" in formats else {}
    check = {} if checked is None else {"checked": checked}
    decides = {"popularity": dict(source.decides), **popularity.SOURCES.brought_by(options.popularity)}

    def run(work: Work) -> Outcome:
        notes = {} if checked is None else carry_check(work, checked, kept)
        done = release(work, kept, options.roots, source, formats, include=include)
        return replace(done, notes={**done.notes, **notes})

    return Stage(
        "cspace", "release", 5, run, {**tables, **check, **country_files(), **wording},
        {**decides, "formats": list(formats), "include": include, **_released_concepts(options.roots)},
        packages=("polars",), before=partial(check_formats, formats),
    )  # fmt: skip


def _released_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what a release reads: countries, languages, and the subconcepts that roots stand for, in their order."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                "roots": [{"qid": one.qid, "subconcept": one.subconcept} for one in concept.roots if one.subconcept],
            }
            for concept in concepts
        }
    }


# The stages that import a cultural space, prompts, or another table that was made elsewhere.


def table_stage(path: Path, table: Table) -> Stage:
    """Take in a table of ours, and make sure that it is one."""

    def run(work: Work) -> Outcome:
        rows = read_table(path, table)
        return table_outcome(work, table, rows)

    return Stage(table.name, "take-table", 1, run, {"published": path}, {"table": table.name})


def taken_space_stage(path: Path) -> Stage:
    """Take in a cultural space: a table of ours, or a file in the public CUBE layout."""
    typed = path.suffix == ".csv"
    use_countries_beside(path)
    names = named_by() if typed else country_files()
    version = 5 if typed else 1  # a list that was typed: countries by whatever they are called, ids of its own
    packages = ("babel", "polars", "pycountry") if typed else ("polars",)
    inputs = {"published": path, **names}
    return Stage("cspace", "take-space", version, lambda work: import_space(work, path), inputs, packages=packages)


def named_by() -> dict[str, Path]:
    """Name the files by which countries of a list are found."""
    return {"world": shipped(WORLD), "names": shipped(NAMES), **country_files()}


def foreign_space_stage(path: Path, concept: str, columns: Mapping[str, str] | None = None) -> Stage:
    """Bring somebody else's list of artifacts into our form."""
    columns = columns or {}
    inputs = {"published": path, **named_by()}
    return Stage(
        "cspace", "import-space", 5, lambda work: import_foreign(work, path, concept, columns), inputs,
        {"concept": concept, **({"columns": dict(columns)} if columns else {})},
        packages=("babel", "polars", "pycountry"),
    )  # fmt: skip


def taken_prompts_stage(path: Path, space: Path, kinds: Sequence[PromptKind]) -> Stage:
    """Take in prompts, and hold them against the cultural space."""
    typed, inputs = is_typed(path), {"published": path, "cspace": space}
    return Stage(
        "prompts", "take-prompts", 2 if typed else 1, lambda work: import_prompts(work, path, space, kinds),
        inputs | (named_by() if typed else country_files()), {"kinds": list(kinds)},
        packages=("babel", "polars", "pycountry") if typed else ("polars",),
    )  # fmt: skip
