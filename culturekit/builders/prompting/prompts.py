"""From the cultural space to prompts: one per artifact, or such that leave the artifact open."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.country_names import folded, without_accents
from culturekit.builders.prompt_templates import (
    IN_ENGLISH,
    NOTHING_ADDED,
    TEMPLATES,
    AddedTemplates,
    Wording,
    added_templates,
    artifact_words,
    labels_in,
    load_translations,
    open_templates,
    prompt_rows,
    underspecified_words,
    within_country_words,
)
from culturekit.builders.prompting.quotas import (
    Decisions,
    Group,
    Quotas,
    as_number,
    read_decisions,
    read_quotas,
    review_sheet,
)
from culturekit.builders.space.cspace import PUBLIC
from culturekit.builders.space.public_cube import (
    NO_STATEMENTS,
    Key,
    Row,
    is_public_cube,
    key_of,
    keyed_rows,
    public_rows,
    read_public_cube,
    read_rows,
    statements_of_file,
    write_public,
)
from culturekit.builders.space.space_files import read_space
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import DrawName, PromptKind, TemplateSetName
from culturekit.core.declared import Typed
from culturekit.core.digests import digest_bytes, read_manifest
from culturekit.core.errors import IntegrityError, UsageError, counted
from culturekit.core.package_data import shipped
from culturekit.core.schemas import CSPACE, DIFFERENCES, DROPS, PROMPTS, QUOTAS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, table_outcome, write_drops, write_table
from culturekit.kg.concepts import ENGLISH, Concept
from culturekit.kg.countries import countries, country_files, use_countries_beside

# Which prompts to build, and from which files a person's choices come.

FILES = ("public", "decisions", "translations", "statements", "labels")


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Which prompts to build; `review` asks for a sheet that people fill in."""

    kinds: tuple[PromptKind, ...] = ("cube",)
    templates: Annotated[TemplateSetName, Field(description="Template set.")] = "released"
    per: Annotated[
        int | None, Field(ge=1, description="At most so many artifacts per country and concept, by popularity. [all]")
    ] = None
    quota: Annotated[
        str | None,
        Field(description="So many artifacts per country and concept: a number, or a YAML or CSV table of quotas."),
    ] = None
    draw: Annotated[DrawName, Field(description="The seed's draw, or a fresh one beside a public one.")] = "seeded"
    public: Annotated[
        str | None, Field(description="Published draw, in the public layout, that a fresh one has nothing of.")
    ] = None
    review: bool = False
    decisions: Annotated[
        tuple[str, ...],
        Field(
            description="Review sheet that was filled in; the next draw replaces what it rejects. "
            "Repeatable; a later sheet counts more."
        ),
    ] = ()
    languages: Annotated[
        tuple[str, ...],
        Field(description="Language of the prompts, en or one with a translation. Repeatable. [en]"),
        Typed("language"),
    ] = (ENGLISH,)
    translations: Annotated[
        tuple[str, ...], Field(description="YAML file of templates in a language, verified by a speaker. Repeatable.")
    ] = ()
    public_layout: Annotated[
        bool,
        Field(description="Write cube.json too, in the layout that CUBE-1K was released in."),
        Typed("public-layout"),
    ] = False
    statements: Annotated[str | None, Field(description="Kept candidates, whose statements go into cube.json.")] = None
    labels: Annotated[
        str | None, Field(description="Items of a graph, which have names of artifacts in the languages of prompts.")
    ] = None

    def check(self) -> None:
        """Refuse options that contradict each other, or would do nothing."""
        if self.per is not None and self.quota is not None:
            raise UsageError("per and quota both limit the draw", hint="Give one of them.")
        if self.quota is not None:
            as_number(self.quota)
        if self.public is not None and self.draw != "fresh":
            raise UsageError("a public draw is left out of a fresh one only", hint="Add --draw fresh.")
        if self.draw == "fresh" and not self.draws:
            raise UsageError(
                "a fresh draw needs to know how many artifacts to take", expected="the draw it follows, or a quota",
                hint="Give the published file with --public, or numbers with --quota.",
            )  # fmt: skip
        if self.public is not None and not is_public_cube(Path(self.public)):
            raise UsageError("the public draw is a file in the public CUBE layout", found=self.public, expected=".json")
        if "cube" not in self.kinds and (self.draws or self.decisions or self.review or self.public_layout):
            raise UsageError("only prompts that name an artifact are drawn and reviewed", expected="the kind cube")
        if self.statements is not None and not self.public_layout:
            raise UsageError("statements stand in the public layout only", hint="Add --public-layout.")
        if not self.languages or len(set(self.languages)) != len(self.languages):
            raise UsageError("each language stands once", found=", ".join(self.languages) or "none")

    @property
    def draws(self) -> bool:
        """Whether chance decides which artifacts are taken."""
        return self.per is not None or self.quota is not None or self.public is not None

    def inputs(self) -> Mapping[str, Path]:
        """Name the files that these options point to, by the part they play."""
        files = {f"decisions-{number:02}": Path(path) for number, path in enumerate(self.decisions, 1)}
        files |= {f"translation-{number:02}": Path(path) for number, path in enumerate(self.translations, 1)}
        if self.public is not None:
            files["public"] = Path(self.public)
        files |= {name: Path(path) for name in ("statements", "labels") if (path := getattr(self, name)) is not None}
        if self.quota is not None and as_number(self.quota) is None:
            files["quotas"] = Path(self.quota)
        return files

    def settings(self) -> Mapping[str, object]:
        """Give what stands in a manifest: everything but the names of files, which stand there by content."""
        settings = {name: value for name, value in asdict(self).items() if name not in FILES}
        if self.quota is not None and as_number(self.quota) is None:
            settings["quota"] = "table"
        return settings


# Which artifacts a benchmark takes: quotas, a seeded draw, what people decided, and what another draw has already.

DRAW_PLACE = "draw_place"
GROUP = ("concept", "country")

LEAST_WEIGHT = 1e-9  # of an artifact of unknown popularity: drawn only when nothing else is left


@dataclass(frozen=True, slots=True)
class Selection:
    """What was taken, under the names people gave; what was seen on the way; quotas beside what they got; and drops."""

    taken: pl.DataFrame
    seen: pl.DataFrame
    quotas: pl.DataFrame
    drops: pl.DataFrame


def select(
    space: pl.DataFrame,
    quotas: Quotas | None,
    decisions: Decisions,
    *,
    seed: int,
    draw: str = "",
    groups: Collection[Group] = (),
) -> Selection:
    """Take the quota of each group in the order of the draw; a rejected artifact gives way to the next.

    Without quotas everything is taken that is not rejected. `groups` have quotas also where nothing is left of them.
    """
    ordered = in_draw_order(space, seed=seed, draw=draw)
    key = [*GROUP, "artifact_id"]
    stated = [(*about, decision.verdict == "reject", decision.name) for about, decision in decisions.items()]
    schema = {**dict.fromkeys(key, pl.String()), "rejected": pl.Boolean(), "edited": pl.String()}
    decided = pl.DataFrame(stated, schema, orient="row")
    allowed = quota_table(space, quotas, groups)
    marked = ordered.join(decided, on=key, how="left", maintain_order="left")
    marked = marked.with_columns(pl.col("rejected").fill_null(value=False)).join(
        allowed.select(*GROUP, "quota"), on=GROUP, how="left", maintain_order="left"
    )
    marked = marked.with_columns(standing=(~pl.col("rejected")).cum_sum().over(GROUP))
    taken = marked.filter(~pl.col("rejected") & (pl.col("standing") <= pl.col("quota")))
    displaced = marked.filter(pl.col("rejected") & (pl.col("standing") < pl.col("quota")))
    seen = pl.concat([taken, displaced]).sort(*GROUP, DRAW_PLACE).select(*space.columns, DRAW_PLACE)
    drops = dropped(displaced, "rejected in review", "name")
    renamed = taken.with_columns(name=pl.coalesce("edited", "name")).select(*space.columns, DRAW_PLACE)
    return Selection(renamed, seen, with_counts(allowed, marked, taken, quotas), drops)


def quota_table(space: pl.DataFrame, quotas: Quotas | None, others: Collection[Group]) -> pl.DataFrame:
    """List the quota of each group of the space, and of groups that are asked for and not in it."""
    sizes = _sizes_of(space)
    groups = {*sizes, *others, *(quotas.named() if quotas else ())}
    rows = [(*group, sizes.get(group, 0) if quotas is None else quotas.quota_of(group)) for group in sorted(groups)]
    schema = {name: QUOTAS.schema[name] for name in ("concept", "country", "quota")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_counts(
    allowed: pl.DataFrame, marked: pl.DataFrame, taken: pl.DataFrame, quotas: Quotas | None
) -> pl.DataFrame:
    """Set beside each quota how many artifacts there were, and how many were taken; empty where nothing was asked."""
    if quotas is None:
        return pl.DataFrame(schema=QUOTAS.schema)
    there = marked.filter(~pl.col("rejected")).group_by(GROUP).agg(available=pl.len().cast(pl.UInt32))
    got = taken.group_by(GROUP).agg(drawn=pl.len().cast(pl.UInt32))
    counted = allowed.join(there, on=GROUP, how="left").join(got, on=GROUP, how="left")
    return counted.with_columns(pl.col("available", "drawn").fill_null(0)).select(*QUOTAS.schema)


def unmet(quotas: Quotas, table: pl.DataFrame) -> list[str]:
    """Say which quotas could not be met, the number found beside the number asked for."""
    short = table.filter(pl.col("drawn") < pl.col("quota")).sort(*GROUP)
    lines = [f"{concept} in {country}: {drawn} of {quota}" for concept, country, quota, _, drawn in short.iter_rows()]
    concepts, places = set(table["concept"]), set(table["country"])
    for (concept, country), quota in quotas.table.items():
        if quota and concept is not None and country is None and concept not in concepts:
            lines.append(f"{concept}: none in the space, {quota} asked for in each country")
        if quota and concept is None and country is not None and country not in places:
            lines.append(f"{country}: nothing in the space, {quota} asked for of each concept")
    return lines


def without_public(space: pl.DataFrame, public: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Leave out what a public draw has: by its item, or by its name or an alias within the concept, accents aside."""

    def bare(concept: str, name: str) -> tuple[str, str]:
        return concept, without_accents(folded(name))

    items = set(public["artifact_id"])
    names = {bare(concept, name) for concept, name in public.select("concept", "name").iter_rows()}
    same: list[str | None] = []
    for row in space.iter_rows(named=True):
        called = (row["name"], *(row.get("aliases") or ()))
        known = row["artifact_id"] in items
        same.append(next((name for name in called if known or bare(row["concept"], name) in names), None))
    marked = space.with_columns(same_name=pl.Series(same, dtype=pl.String))
    drops = dropped(marked.drop_nulls("same_name"), "in the public draw", "same_name")
    return space.filter(marked["same_name"].is_null()), drops


def _sizes_of(space: pl.DataFrame) -> dict[Group, int]:
    """Count the artifacts of each concept and country."""
    return {(concept, country): size for concept, country, size in space.group_by(GROUP).len().iter_rows()}


def dropped(rows: pl.DataFrame, reason: str, detail: str) -> pl.DataFrame:
    """Say why artifacts are not taken; `detail` is a column."""
    return rows.select(
        "concept", key=pl.format("{} {}", "artifact_id", "country"), stage=pl.lit("prompts"), reason=pl.lit(reason),
        detail=detail,
    ).select(*DROPS.schema)  # fmt: skip


def unworded(words: pl.DataFrame) -> pl.DataFrame:
    """Give what has no prompt, for want of a template or of a country's form, as drops."""
    return words.filter(pl.col("text").is_null()).with_columns(stage=pl.lit("prompts")).select(*DROPS.schema)


def in_draw_order(space: pl.DataFrame, *, seed: int, draw: str = "") -> pl.DataFrame:
    """Give each row its place in the draw of its country and concept, from 1.

    Each row gets the key log(u) / weight with u uniform from a hash of seed and row; the largest keys win, and what is
    left out of a group leaves the order of the others as it is (Efraimidis and Spirakis 2006). `draw` names a draw
    that is independent of others of the same seed.
    """
    check_weights(space)
    begin = f"{seed}|{draw}|" if draw else f"{seed}|"
    rows = space.select("concept", "country", "artifact_id", "popularity").iter_rows()
    keys = [draw_key(begin + "|".join(identity), popularity) for *identity, popularity in rows]
    ordered = space.with_columns(draw_key=pl.Series(keys, dtype=pl.Float64)).sort(
        [*GROUP, "draw_key", "artifact_id"], descending=[False, False, True, False]
    )
    drawn_as = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over(GROUP).alias(DRAW_PLACE)
    return ordered.with_columns(drawn_as).drop("draw_key")


def draw_key(identity: str, weight: float | None) -> float:
    """Turn a row's identity and weight into its place in the draw."""
    uniform = (int(digest_bytes(identity.encode())[:13], 16) + 1) / (16**13 + 1)
    return math.log(uniform) / max(weight or 0.0, LEAST_WEIGHT)


def check_weights(space: pl.DataFrame) -> None:
    """Make sure that popularity can weigh a draw: no minus, no infinity, no not-a-number."""
    known = pl.col("popularity").is_not_null()
    wrong = space.filter(known & ~(pl.col("popularity").is_finite() & (pl.col("popularity") >= 0)).fill_null(True))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise IntegrityError(
            f"{wrong.height} artifacts have a popularity that cannot weigh a draw", found=str(row["popularity"]),
            where=f"{row['artifact_id']} in {row['country']}",
            expected="a finite number, 0 or above, or none where it is unknown",
        )  # fmt: skip


REVIEW = "review.csv"  # the sheet of a draw, in the stage's folder
IN_NAME = "white space around the name"  # the released text is the rebuilt one but for white space around the name


def build_prompts(
    work: Work,
    cspace_path: Path,
    options: PromptOptions,
    *,
    seed: int,
    groups: Collection[Group] = (),
    concepts: Sequence[Concept] = (),
) -> Outcome:
    """Write the prompts of the wanted kinds, and the artifacts that no template fits.

    `groups` are the countries of the concepts' root configs: a quota is for each, also where the space has nothing.
    `concepts` are root configs, which may bring the words of their prompts.
    """
    options.check()
    space, unread = read_space(cspace_path)
    wordings = wordings_of(options, concepts, space)
    quotas = quotas_of(options)
    rows: list[pl.DataFrame] = []
    drops = [unread]
    counts: dict[str, int] = {}
    notes: dict[str, object] = {}
    work.progress.begin(len(options.kinds), "kinds of prompt")
    for kind in options.kinds:
        if kind == "cube":
            selection, decisions = selected(space, quotas, options, wordings[0], seed=seed, groups=groups)
            words = [artifact_words(selection.taken, wording) for wording in wordings]
            drops.append(selection.drops)
            counts |= write_selection(work, selection, decisions, options, wordings[0])
            notes |= notes_of(quotas, selection, options)
        else:
            write = underspecified_words if kind == "underspecified" else within_country_words
            words = [write(space, wording) for wording in wordings]
        prompt_table = pl.concat([prompt_rows(each, w, kind=kind) for each, w in zip(words, wordings, strict=True)])
        if kind == "cube" and options.public_layout:
            counts |= write_layout(work, cspace_path, selection, options, prompt_table)
        plain = options.templates == "released" and ENGLISH in options.languages
        if kind == "cube" and plain and is_public_cube(cspace_path) and not (options.draws or options.decisions):
            differences, rebuilt = compare_texts(read_rows(cspace_path), prompt_table)
            write_table(work.out, DIFFERENCES, differences)
            counts |= {"rebuilt": rebuilt, "differences": differences.height}
        rows.append(prompt_table)
        drops += map(unworded, words)
        work.progress.advance(1)
    prompts, dropped_rows = pl.concat(rows), pl.concat(drops)
    reasons = dict(dropped_rows["reason"].value_counts().iter_rows())
    if marks := Counter(prompts.select("language", "marks").explode("marks").drop_nulls().iter_rows()):
        notes["unverified"] = {f"{language}: {mark}": count for (language, mark), count in sorted(marks.items())}
        counts |= {f"{IN_ENGLISH}, asked in {one}": count for (one, mark), count in marks.items() if mark == IN_ENGLISH}
    if prompts.is_empty():
        found = notes.get("findings", [])
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items())) or "none was drawn"
        of = f" of {counted(space.height, 'artifacts')} in {cspace_path.name}: {why}"
        nothing = "no prompt was built" + (f": {cspace_path.name} has no artifact" if space.is_empty() else of)
        notes["findings"] = [nothing, *(found if isinstance(found, list) else [])]
    paired = ("pair_id", "marks") if options.languages != (ENGLISH,) else ()  # a single language needs no pairs
    write_table(work.out, PROMPTS, prompts.select(*PROMPTS.schema, *paired))
    write_drops(work.out, dropped_rows, once=True)
    return Outcome({"prompts": prompts.height, "drops": dropped_rows.height, **counts}, reasons, notes)


def wordings_of(
    options: PromptOptions, concepts: Sequence[Concept] = (), space: pl.DataFrame | None = None
) -> list[Wording]:
    """Give the words of each wanted language: those shipped or translated, and over them those of root configs.

    Names of artifacts of a space are looked up where labels are given.
    """
    paths = [Path(path) for path in options.translations]
    spoken_by = {language for concept in concepts for language in concept.prompts}
    found = dict(load_translations(paths, options.languages, options.templates, spoken_by=spoken_by))
    english = found.pop(ENGLISH, None)
    added = dict.fromkeys(options.languages, NOTHING_ADDED)
    if english is not None:
        added[ENGLISH] = AddedTemplates(english.artifact, english.underspecified, english.within_country)
    for concept in concepts:
        for language in set(concept.prompts) & set(added):
            added[language] = added_templates(concept.concept, concept.prompts[language]).over(added[language])
    labels: dict[str, Mapping[str, str]] = {}
    if options.labels is not None and space is not None:
        labels = {language: labels_in(Path(options.labels), space["artifact_id"], language) for language in found}
    return [
        Wording(options.templates, found.get(language), added[language], labels.get(language, {}))
        for language in options.languages
    ]


def check_words(concepts: Iterable[str], kinds: Sequence[PromptKind], wordings: Iterable[Wording]) -> None:
    """Refuse a concept without a template for a wanted kind: it would be scored by prompts of other concepts."""
    concepts = list(concepts)
    for wording in wordings:
        by_kind: Mapping[PromptKind, Collection[str]] = {
            "cube": {key.partition("/")[0] for key in wording.artifact.templates},
            "underspecified": {each for each in concepts if wording.leaving_open(each)},
            "within-country": {each for each in concepts if open_templates(wording.within_country, each)},
        }
        for kind in kinds:
            missing = [concept for concept in concepts if concept not in by_kind[kind]]
            if missing:
                part = {"cube": "artifact", "within-country": "within_country"}.get(kind, kind)
                raise UsageError(
                    f"no {wording.language} template for prompts of the kind {kind} about {', '.join(missing)}",
                    expected=f"`prompts: {{{wording.language}: {{{part}: ...}}}}` in the root config of the concept",
                    hint="Give that config in `concepts` or with --roots, or templates with --translations or in "
                    "`prompts: {translations: ...}`.",
                )


def quotas_of(options: PromptOptions) -> Quotas | None:
    """Find out how many artifacts each group gives; None where all are taken."""
    if options.per is not None:
        return Quotas({(None, None): options.per})
    if options.quota is not None:
        return read_quotas(options.quota)
    return None if options.public is None else Quotas(_sizes_of(read_public_cube(Path(options.public)).space))  # type: ignore[arg-type]


def selected(
    space: pl.DataFrame,
    quotas: Quotas | None,
    options: PromptOptions,
    wording: Wording,
    *,
    seed: int,
    groups: Collection[Group],
) -> tuple[Selection, Decisions]:
    """Take what quotas, the draw, people's decisions and an earlier draw leave.

    What no template fits takes no place in a draw.
    """
    decisions = read_decisions([Path(path) for path in options.decisions], space)
    there = set(space.select("concept", "country").iter_rows())
    asked = there | {group for group in groups if quotas is not None and quotas.quota_of(group)}
    drops = []
    if options.draws:
        space, unfit = with_template(space, wording)
        drops.append(unfit)
    if options.public is not None:
        space, known = without_public(space, read_public_cube(Path(options.public)).space)
        drops.append(known)
    draw = "" if options.draw == "seeded" else options.draw
    selection = select(space, quotas, decisions, seed=seed, draw=draw, groups=asked)
    return Selection(selection.taken, selection.seen, selection.quotas, pl.concat([*drops, selection.drops])), decisions


def with_template(space: pl.DataFrame, wording: Wording) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Leave out what would get no prompt, and of artifacts with the same prompt all but the best known."""
    words = artifact_words(space, wording)
    texts = space.with_columns(words["text"]).drop_nulls("text")
    ordered = texts.sort(pl.col("popularity").fill_null(-1.0), "artifact_id", descending=[True, False])
    marked = ordered.with_columns(chosen=pl.col("artifact_id").first().over("concept", "country", "text"))
    first = marked.unique(["concept", "country", "text"], keep="first", maintain_order=True)
    doubles = marked.filter(pl.col("artifact_id") != pl.col("chosen"))
    drops = [unworded(words), dropped(doubles, "same prompt as a better known artifact", "chosen")]
    return first.select(space.columns), pl.concat(drops)


def write_selection(
    work: Work, selection: Selection, decisions: Decisions, options: PromptOptions, wording: Wording
) -> dict[str, int]:
    """Write the quotas beside what they got, and the sheet for the next review."""
    counts: dict[str, int] = {}
    if options.draws:
        write_table(work.out, QUOTAS, selection.quotas)
    seen = list(selection.seen.iter_rows(named=True)) if options.review or options.decisions else []
    if options.review:
        texts = artifact_words(selection.seen, wording)["text"].to_list()
        write_atomically(work.out / REVIEW, review_sheet(seen, texts, decisions))
    if options.review or options.decisions:
        verdicts = Counter(found.verdict if (found := decisions.get(key_of(row))) else "undecided" for row in seen)
        words = {"accept": "accepted", "edit": "renamed", "reject": "rejected", "undecided": "undecided"}
        counts |= {words[verdict]: count for verdict, count in verdicts.items()}
    return counts


def notes_of(quotas: Quotas | None, selection: Selection, options: PromptOptions) -> dict[str, object]:
    """Say which quotas could not be met; a limit, which `per` is, may well not be reached."""
    if quotas is None:
        return {}
    short = unmet(quotas, selection.quotas)
    shown = [f"quota not met: {line}" for line in short[:20]]
    if len(short) > 20:
        shown.append(f"and {len(short) - 20} more quotas not met: quotas.parquet has them all")
    return {"below_limit" if options.per is not None else "findings": shown} if shown else {}


def write_layout(
    work: Work, path: Path, selection: Selection, options: PromptOptions, prompts: pl.DataFrame
) -> dict[str, int]:
    """Write the artifacts and their English prompts as CUBE-1K was released."""
    source = path if options.statements is None else Path(options.statements)
    known = statements_of_file(source) if options.statements or is_public_cube(path) else NO_STATEMENTS
    english = prompts.filter(language=ENGLISH).select(*GROUP, "artifact_id", "text")
    taken = selection.taken.join(english, on=[*GROUP, "artifact_id"], maintain_order="left")
    return {"public_rows": write_public(work.out / PUBLIC, [public_rows(taken, taken["text"], known)])}


def compare_texts(rows: Sequence[Row], prompts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """List the rows whose released text is not the rebuilt one, and count those that are rebuilt, names stripped."""
    english = prompts.filter(language=ENGLISH).select(*GROUP, "artifact_id", "text")
    built: dict[Key, str] = {(*key,): text for *key, text in english.iter_rows()}
    differences: list[dict[str, Any]] = []
    for number, (key, row) in enumerate(keyed_rows(rows)):
        text, released = None if key is None else built.get(key), row["prompt"] or ""
        if text == released:
            continue
        concept, country, artifact_id = key or (row["domain"], None, None)
        differences.append({
            "row": number, "artifact_id": artifact_id, "concept": concept, "country": country, "name": row["name"],
            "released": released, "rebuilt": text, "difference": difference(released, text, row["name"] or ""),
        })  # fmt: skip
    missed = sum(found["difference"] != IN_NAME for found in differences)
    return pl.DataFrame(differences, schema=DIFFERENCES.schema), len(rows) - missed


def difference(released: str, rebuilt: str | None, name: str) -> str:
    """Say in a few words how a released text departs from the rebuilt one."""
    if rebuilt is None:
        return "no template"
    if name and released.replace(name, name.strip()) == rebuilt:
        return IN_NAME
    return "white space" if "".join(released.split()) == "".join(rebuilt.split()) else "words"


def artifact_prompts(space: pl.DataFrame) -> pl.DataFrame:
    """Write a prompt per artifact that is nothing but its name, under the id of its artifact.

    By these the pictures of a folder find what they show, however many countries it belongs to.
    """
    first = space.sort("artifact_id", "country", "concept").unique("artifact_id", keep="first", maintain_order=True)
    cube, nothing = pl.lit("cube"), pl.lit(None, pl.String)
    prompts = first.select(
        "artifact_id", "concept", "country", prompt_id="artifact_id", text="name", benchmark=cube, kind=cube,
        language=pl.lit("en"), template_id=pl.lit("name"), negative_text=nothing, group=nothing,
    )  # fmt: skip
    return prompts.select(list(PROMPTS.schema))


EARLIER = ("statements", "labels")  # the roles of tables that an earlier stage of the same run may still have to write


def prompts_stage(
    cspace: Path,
    options: PromptOptions,
    *,
    seed: int,
    concepts: Sequence[Concept] | None = None,
    released: Path | None = None,
) -> Stage:
    """Build prompts; quotas run over the countries of `concepts`, or of those that the space was released with.

    Words that `concepts` bring are used; one that no template speaks of is refused here, before anything runs.

    `released` is the space as it was published, where it was taken in.
    """
    options.check()
    use_countries_beside(released or cspace)
    groups = quota_groups(released or cspace, concepts) if options.draws else []
    for role, path in options.inputs().items():
        if role not in EARLIER and not path.is_file():
            raise UsageError("there is no such file", where=str(path), expected="a file that prompts are built from")
    known = tuple(concepts or ())
    check_words([concept.concept for concept in known], options.kinds, wordings_of(options, known))
    words = {
        concept.concept: concept.model_dump(mode="json", include={"prompts"})["prompts"]
        for concept in known
        if concept.prompts
    }
    return Stage(
        "prompts",
        "prompts",
        1 if options.languages == (ENGLISH,) else 2,
        lambda work: build_prompts(work, cspace, options, seed=seed, groups=groups, concepts=known),
        {"cspace": cspace, **country_files(), "templates": shipped(TEMPLATES), **options.inputs()},
        {
            **options.settings(),
            **({"groups": [list(group) for group in groups]} if groups else {}),
            **({"words": words} if words else {}),
        },
        {"draw": seed} if options.draws else {},
        packages=("polars",),
    )


def quota_groups(cspace: Path, concepts: Sequence[Concept] | None) -> list[Group]:
    """List every country of every concept: of the root configs, or of those that the space beside it was made with."""
    if concepts is not None:
        scopes: Mapping[str, Any] = {concept.concept: concept.countries for concept in concepts}
    else:
        manifest = read_manifest(cspace.parent)
        released = manifest is not None and manifest.stage == "release" and cspace.name in manifest.outputs
        stated: Any = manifest.options["concepts"] if manifest is not None and released else {}
        scopes = {name: config["countries"] for name, config in stated.items()}
    every = countries()
    return sorted((name, iso) for name, scope in scopes.items() for iso in (every if scope == "all" else scope))


def one_language_stage(prompts: Path, language: str) -> Stage:
    """Keep the prompts in one language: references show artifacts once, in however many languages models are asked."""

    def run(work: Work) -> Outcome:
        return table_outcome(work, PROMPTS, read_table(prompts, PROMPTS).filter(language=language))

    return Stage("reference-prompts", "prompts-in", 1, run, {"prompts": prompts}, {"language": language})


def named_artifacts_stage(space: Path) -> Stage:
    """Name every artifact once, so that pictures of references find theirs."""

    def name(work: Work) -> Outcome:
        return table_outcome(work, PROMPTS, artifact_prompts(read_table(space, CSPACE)))

    return Stage("reference-prompts", "name-artifacts", 1, name, {"cspace": space}, packages=("polars",))
