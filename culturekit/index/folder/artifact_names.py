"""The names of artifacts: from the cultural space, with aliases from wherever they are listed."""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from pydantic import AfterValidator, Field

from culturekit.core.atomic import decoding
from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import ARTIFACTS, CANDIDATES, CSPACE, IMAGES, PROMPTS
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.core.yaml_source import StrictModel, load_model, not_empty
from culturekit.index.embedding.embedding import embed_texts
from culturekit.index.encoder import Vectors


def artifacts_of(cspace_path: Path) -> pl.DataFrame:
    """Fold the cultural space to one row per artifact, countries in stated order where it is known.

    Without a stated order the countries stand by ISO code.
    """
    space = read_table(cspace_path, CSPACE)
    if "country_order" not in space.columns:
        space = space.with_columns(country_order=pl.lit(0, pl.UInt16))
    ordered = space.sort("artifact_id", "country_order", "country", "concept")
    folded = ordered.group_by("artifact_id", maintain_order=True).agg(
        artifact=pl.col("name").first(),
        concepts=pl.col("concept").unique().sort(),
        places=pl.struct("country", "continent").unique(maintain_order=True),
    )
    countries = pl.col("places").list.eval(pl.element().struct.field("country"))
    continents = pl.col("places").list.eval(pl.element().struct.field("continent"))
    return folded.with_columns(countries=countries, continents=continents).select(list(ARTIFACTS.columns))


AliasesOfCandidates: TypeAlias = Annotated[
    Path | None, Field(description="Candidates table; the aliases in it count as names.")
]


def artifact_names(
    cspace_path: Path, *, aliases: Path | None = None, candidates: Path | None = None
) -> tuple[dict[str, list[str]], int]:
    """Give the names of every artifact, its own first, then its aliases in alphabetical order.

    Args:
        cspace_path: CSPACE; its column `aliases` counts, where it has one.
        aliases: Parquet or CSV with artifact_id and alias.
        candidates: CANDIDATES, whose aliases count by QID.

    Returns:
        Names by artifact_id, and how many aliases belong to no artifact of the cultural space.
    """
    space = read_table(cspace_path, CSPACE).sort("artifact_id", "country", "concept")
    first = space.unique("artifact_id", keep="first", maintain_order=True)
    names = {artifact: [name] for artifact, name in first.select("artifact_id", "name").iter_rows()}
    pairs = [pl.DataFrame(schema=_ALIASES)]
    if "aliases" in space.columns:
        pairs.append(space.select("artifact_id", alias="aliases").explode("alias"))
    if aliases is not None:
        pairs.append(_alias_rows(aliases))
    known = pl.concat(pairs).drop_nulls()
    strangers = sum(artifact not in names for artifact in known["artifact_id"])
    if candidates is not None:
        listed = read_table(candidates, CANDIDATES).select(artifact_id="qid", alias="aliases").explode("alias")
        known = known.vstack(listed.drop_nulls())
    tidy = known.filter(pl.col("alias").str.strip_chars() != "").unique().sort("alias")
    for artifact, more in tidy.group_by("artifact_id").agg("alias").iter_rows():
        if artifact in names:
            names[artifact] += more
    return names, strangers


_ALIASES = {"artifact_id": pl.String, "alias": pl.String}


def _alias_rows(path: Path) -> pl.DataFrame:
    with decoding(path, "the aliases cannot be read", expected="Parquet or CSV"):
        table = read_csv_texts(path) if path.suffix.lower() == ".csv" else pl.read_parquet(path)
    if set(_ALIASES) - set(table.columns):
        raise UsageError(
            "the table of aliases lacks a column", where=str(path), expected="artifact_id and alias",
            found=", ".join(table.columns),
        )  # fmt: skip
    return table.select(pl.col(list(_ALIASES)).cast(pl.String))


def country_names(cspace_path: Path) -> dict[str, list[str]]:
    """Give the names of every artifact's countries, by its id."""
    space = read_table(cspace_path, CSPACE)
    folded = space.sort("artifact_id", "country").group_by("artifact_id", maintain_order=True).agg("country_name")
    return {artifact: list(dict.fromkeys(named)) for artifact, named in folded.iter_rows()}


# Pictures that show artifacts: which artifact each shows, and which cannot be used.

PromptsOfReferences: TypeAlias = Annotated[
    Path | None,
    Field(description="Prompts of the references; they say what each shows when its table does not."),
    Typed(needs="references"),
]

_NO_PICTURE = "reference without a picture"
_SHOWS_NOTHING = "reference that shows no artifact"
_UNKNOWN = "reference of an unknown artifact"


def known_references(
    references_path: Path, prompts_path: Path | None, artifacts: pl.DataFrame
) -> tuple[pl.DataFrame, list[tuple[str, str, str | None]]]:
    """Part the reference pictures into rows of known artifacts, and image_id, reason and detail of the others."""
    images = _with_artifacts(read_table(references_path, IMAGES), references_path, prompts_path)
    broken, shows = pl.col("status") != "ok", pl.col("artifact_id")
    why = pl.when(broken).then(pl.lit(_NO_PICTURE)).when(shows.is_null()).then(pl.lit(_SHOWS_NOTHING))
    why = why.when(~shows.is_in(artifacts["artifact_id"].to_list())).then(pl.lit(_UNKNOWN))
    outcome = pl.when(pl.col("reason") != "").then("reason").otherwise("status")
    judged = images.with_columns(why=why, detail=pl.when(broken).then(outcome).otherwise(shows))
    rows = judged.filter(pl.col("why").is_null()).drop("why", "detail").sort("artifact_id", "image_id")
    if rows.is_empty():
        raise UsageError("no reference picture shows an artifact of the cultural space", where=str(references_path))
    return rows, judged.filter(pl.col("why").is_not_null()).select("image_id", "why", "detail").rows()


def _with_artifacts(images: pl.DataFrame, references_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """Say of each picture which artifact it shows: the truth, or else what its prompt asked for."""
    if "truth_artifact_id" in images.columns:
        return images.with_columns(artifact_id="truth_artifact_id")
    if prompts_path is None:
        raise UsageError(
            "the table does not say which artifact a reference picture shows",
            where=str(references_path),
            expected="a column truth_artifact_id, or --prompts with the prompts the pictures were made from",
        )
    asked = read_table(prompts_path, PROMPTS).select("prompt_id", "artifact_id")
    return images.join(asked, on="prompt_id", how="left", maintain_order="left")


# The words that artifacts are put into for encoders of texts: shipped ones, or those of a file.


def _names_in(template: str) -> list[str]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} cannot be read: {error}") from error
    return ["" if name is None else name for _, name, _, _ in parsed if name is not None]


def _naming(template: str) -> str:
    """Accept a template with {name} and nothing else to fill in."""
    if set(_names_in(template)) != {"name"}:
        raise ValueError(f"a template names the artifact as {{name}} and has no other placeholder, not {template!r}")
    return template


def _naming_both(template: str) -> str:
    if set(_names_in(template)) != {"name", "country"}:
        raise ValueError(f"a template of `country` has {{name}} and {{country}}, not {template!r}")
    return template


_Named = Annotated[str, AfterValidator(_naming)]
_NamedWithCountry = Annotated[str, AfterValidator(_naming_both)]


class TextTemplates(StrictModel):
    """Templates for any artifact, more of them by concept, and those that name a country, too."""

    generic: Annotated[tuple[_Named, ...], AfterValidator(not_empty)]
    concepts: Mapping[str, tuple[_Named, ...]] = Field(default_factory=dict)
    country: tuple[_NamedWithCountry, ...] = ()

    def texts(self, names: Sequence[str], concepts: Sequence[str], countries: Sequence[str]) -> list[str]:
        """Put an artifact into words, each text once; without countries none is named."""
        plain = [*self.generic, *(text for concept in concepts for text in self.concepts.get(concept, ()))]
        texts = [template.format(name=name) for name in names for template in plain]
        placed = [
            template.format(name=name, country=country)
            for name in names
            for country in countries
            for template in self.country
        ]
        return list(dict.fromkeys([*texts, *placed]))


def text_templates(path: Path | None = None) -> TextTemplates:
    """Load the templates of a file, or the shipped ones."""
    return load_model(path or shipped("index/folder/text_templates.yaml"), TextTemplates)


# The text channel of an index: one vector per artifact, the middle of what its names are in many wordings.

_SAMPLES = 5
_SHORTEST = 1e-6


def text_vectors(
    work: Work,
    artifacts: pl.DataFrame,
    names: Mapping[str, Sequence[str]],
    templates: TextTemplates,
    encoder: str,
    *,
    countries: Mapping[str, Sequence[str]],
) -> tuple[pl.DataFrame, Vectors, dict[str, Any]]:
    """Give every artifact the vector of its names.

    Args:
        work: scratch, engine and progress of the stage.
        artifacts: ARTIFACTS.
        names: of each artifact, the main one first.
        templates: how they are put into words.
        encoder: SPEC of an encoder of texts.
        countries: names of each artifact's countries, where texts are to name them; empty otherwise.

    Returns:
        artifact_id and source of each vector, the source being the first of an artifact's texts; the vectors, float32
        (n, dim) of unit norm; and how many texts were encoded, and which of them the encoder reads only in part.
    """
    texts = [
        templates.texts(checked(artifact_id, names[artifact_id]), concepts, countries.get(artifact_id, ()))
        for artifact_id, concepts in artifacts.select("artifact_id", "concepts").iter_rows()
    ]
    different = list(dict.fromkeys(text for some in texts for text in some))
    each, long = embed_texts(different, encoder, work.scratch, progress=work.progress)
    row_of = {text: number for number, text in enumerate(different)}
    vectors = np.stack([middle(each[[row_of[text] for text in some]]) for some in texts])
    cut = [different[one.place] for one in long]
    notes: dict[str, Any] = {"texts": len(different), "texts_too_long": len(cut)}
    if cut:
        notes["samples_too_long"] = cut[:_SAMPLES]
        notes["context"] = long[0].most
    rows = artifacts.select("artifact_id", source=pl.Series([some[0] for some in texts], dtype=pl.String))
    return rows, vectors, notes


def checked(artifact_id: str, names: Sequence[str]) -> list[str]:
    """Tidy the names of an artifact: spaces trimmed, each once whatever its capitals; refuse one without a name."""
    tidy = [" ".join(name.split()) for name in names]
    if not tidy or not tidy[0]:
        raise UsageError(
            "an artifact has no name to put into words", where=artifact_id, expected="a name in the cultural space",
            hint="Name it, or build without the text channel: --channel image.",
        )  # fmt: skip
    kept: dict[str, str] = {}
    for name in filter(None, tidy):
        kept.setdefault(name.casefold(), name)
    return list(kept.values())


def middle(vectors: Vectors) -> Vectors:
    """Give the middle of unit vectors, brought to unit length."""
    total = vectors.sum(axis=0, dtype=np.float64)
    norm = float(np.sqrt(total @ total))
    if norm < _SHORTEST * len(vectors):
        raise UsageError("the texts of an artifact cancel out: the encoder sees opposites in them")
    unit: Vectors = (total / norm).astype(np.float32)
    return unit
