"""The stages in which people decide about candidates: sheets and forms out, decisions in, verdicts from them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from culturekit.builders.filtering.candidate_review import (
    CANDIDATE_SHEET,
    CandidateDecision,
    DecisionWord,
    Known,
    candidate_sheet,
    check_day,
    day_problem,
    known_candidates,
    read_candidate_sheet,
    review_candidates,
    shown_candidate,
    table_beside,
    waiting,
)
from culturekit.builders.filtering.cspace_filter import country_name
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import VerdictWord
from culturekit.core.digests import InputRecord, digest_file
from culturekit.core.errors import ConfigError, Problem, UsageError, counted
from culturekit.core.inputs import roles, roles_among
from culturekit.core.package_data import shipped
from culturekit.core.schemas import ANNOTATION_KEY, REVIEW_GROUPS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.core.yaml_source import load_model
from culturekit.kg.countries import country_files
from culturekit.kg.store import GraphTables
from culturekit.people.answers import read_exports
from culturekit.people.export import PROJECT_FILE, ExportOptions, export_project
from culturekit.people.importing import read_project, records_of
from culturekit.people.scheme import Scheme
from culturekit.people.tasks import Item, Quotas

ANSWERS, SHEET = "answers", ".csv"

PER_SHEET, GROUPS_PER_SHEET = 200, 20
GROUPS_FORM = "people/cspace_groups.yaml"

First: TypeAlias = Literal["size", "popularity", "confidence"]
FIRST: Mapping[str, pl.Expr] = {
    "size": pl.len().cast(pl.Int64),
    "popularity": pl.col("sitelinks").fill_null(0).sum(),
    "confidence": -pl.col("confidence").fill_null(0.5).mean(),
}  # what the groups that come first have most of
KEYS = ("concept", "root", "class", "cause")
FEWEST = 5  # candidates that are a group of their own; fewer join those of the same class, or else root
SHOWN = 12
SECONDS_EACH = 10
NOT_KNOWN = "–"


@dataclass(frozen=True, slots=True)
class Handing:
    """How candidates are handed to people: in `groups` or one by one, which come `first`, and in which forms."""

    reviewers: int = 1
    groups: bool = False
    first: First | None = None
    label_studio: bool = False


def review_export_stage(
    kept: Path, how: Handing = Handing(), *, verdicts: Sequence[VerdictWord] = ("review",),
    removed: Path | None = None, told: Path | None = None, graph: Path | None = None,
) -> Stage:  # fmt: skip
    """Write the candidates that wait for a person as a sheet, and as a form to serve or to hand out.

    `verdicts` chooses others, so that a person can overrule a judge; `removed` has those that it removed, `told` what
    it said of each, and `graph` names classes.
    """
    per_sheet, ranked = GROUPS_PER_SHEET if how.groups else PER_SHEET, how.groups or how.first is not None
    options = ExportOptions(
        Quotas(how.reviewers), per_sheet, checks=0, repeats=0, ranked=ranked, label_studio=how.label_studio
    )

    def run(work: Work) -> Outcome:
        rows = waiting(kept, verdicts, removed=removed, told=told)
        units = ordered(rows, how.first or "size", groups=how.groups) if ranked else pl.DataFrame()
        if how.groups:
            scheme, more = review_scheme(GROUPS_FORM), {"candidates": units.height}
            write_table(work.out, REVIEW_GROUPS, units.select(list(REVIEW_GROUPS.schema)).sort(REVIEW_GROUPS.key))
            items = group_items(units, None if graph is None else GraphTables(graph))
        else:
            scheme, more = review_scheme(), {}
            rows = [rows[number] for number in units["at"]] if ranked else rows
            write_atomically(work.out / CANDIDATE_SHEET, candidate_sheet(rows))
            items = candidate_items(rows, scheme)
        done = export_project(work, items, {}, scheme, {}, options, Counter(), seed=0)
        return replace(done, counts={**done.counts, **more})

    inputs = roles_among({"kept": kept, "removed": removed, "verdicts": told, "graph": graph})
    inputs |= {"scheme": shipped(GROUPS_FORM if how.groups else "people/cspace_review.yaml"), **country_files()}
    settings = {**asdict(options), "groups": how.groups, "first": how.first, "verdicts": list(verdicts)}
    return Stage("review-export", "review-export", 3, run, inputs, settings, packages=("polars",))


def ordered(rows: Sequence[Mapping[str, Any]], first: First, *, groups: bool) -> pl.DataFrame:
    """Order what waits, by the group or one by one, and say which group each is in.

    Of a group, `root`, `class` and `cause` are what all of it share: those of few join others of their class, or else
    of their root.
    """
    columns = ("concept", "qid", "country", "label", "description", "reason", "why", "sitelinks", "confidence")
    units = pl.DataFrame(
        [{name: row[name] for name in columns} | {"at": at, "root": next(iter(row["roots"]), NOT_KNOWN),
          "class": next(iter([*row["p31"], *row["p279"]]), NOT_KNOWN)} for at, row in enumerate(rows)],
        infer_schema_length=None,
    )  # fmt: skip
    why = pl.col("why").cast(pl.String)
    units = units.with_columns(pl.col("confidence").cast(pl.Float64), cause=pl.coalesce(why, "reason"))
    for name in ("cause", "class"):
        few = pl.len().over(KEYS) < FEWEST
        units = units.with_columns(pl.when(few).then(pl.lit(NOT_KNOWN)).otherwise(name).alias(name))
    key = list(KEYS) if groups else ["at"]
    places = units.group_by(key).agg(most=FIRST[first]).sort("most", *key, descending=[True, *(False for _ in key)])
    units = units.join(places.with_row_index("place", 1).drop("most"), on=key, how="left").sort("place", "at")
    return units.with_columns(group=pl.format("group-{}", pl.col("place").cast(pl.String).str.zfill(6)))


def group_items(units: pl.DataFrame, graph: GraphTables | None) -> list[Item]:
    """Make an item of every group, in their order; the graph names roots and classes."""
    named = {} if graph is None else graph.names({*units["root"], *units["class"]})
    items = []
    for part in units.partition_by("group", maintain_order=True):
        one, size = part.row(0, named=True), part.height
        kind = [f"{counted(size, 'things')} (concept: {one['concept']})"]
        kind += [f"{words}: {named.get(one[name], one[name])}" for name, words in
                 (("root", "Found under"), ("class", "Class")) if one[name] != NOT_KNOWN]  # fmt: skip
        cells = part["country"].value_counts(sort=True).head(8).iter_rows()
        kind.append("Countries: " + ", ".join(f"{country_name(iso)} {count:,}" for iso, count in cells))
        steps = part.sort("sitelinks", "qid", descending=True).gather_every(-(-size // SHOWN))
        sample = [
            f"{row['label'] or row['qid']} ({country_name(row['country'])})"
            + (f": {row['description']}" if row["description"] else "")
            for row in steps.iter_rows(named=True)
        ]
        minutes = counted(max(round(size * SECONDS_EACH / 60), 1), "minutes")
        texts = {
            "kind": "\n".join(kind),
            "why": "different reasons" if one["cause"] == NOT_KNOWN else one["cause"],
            "sample": "\n".join(sample),
            "follows": f"Accept: {counted(size, 'rows')} more in the release.\nReject: none of them in it.\n"
            f"They differ: they wait, and somebody looks at each (about {minutes}).",
        }
        about = {"model": None, "concept": one["concept"], "country": None, "group": None, "prompt_id": None}
        items.append(Item(one["group"], {}, texts, None, about))
    return items


@dataclass(frozen=True, slots=True)
class ReviewFiles:
    """What people sent back: sheets, and exports in JSON, which the exported `project` explains.

    `by` and `on` say who decided and when, where a sheet or an export does not.
    """

    answers: tuple[Path, ...]
    project: Path | None = None
    by: str | None = None
    on: str | None = None

    def inputs(self) -> Mapping[str, Path]:
        """Name the files by their roles."""
        if not self.answers:
            raise UsageError("there is nothing to import", expected="a sheet, or JSON of Label Studio or of the form")
        exports = [path for path in self.answers if path.suffix.lower() != SHEET]
        if exports and self.project is None:
            raise UsageError(
                "an export in JSON is read with the project it belongs to", found=str(exports[0]),
                expected="--project, the folder that `cspace review export` wrote",
            )  # fmt: skip
        if self.project is not None and not exports:
            raise UsageError("sheets are read without their project", expected="an export in JSON beside --project")
        if self.by is not None and len(exports) == len(self.answers):
            raise UsageError("exports say who decided", expected="a sheet beside --by", found=str(exports[0]))
        check_day(self.on)
        found = roles(ANSWERS, self.answers)
        if exports and self.project is not None:  # the sheet beside these may be filled in meanwhile
            found |= {"project": self.project / PROJECT_FILE, "key": self.project / f"{ANNOTATION_KEY.name}.parquet"}
            found |= roles_among({"groups": table_beside(self.project / PROJECT_FILE, REVIEW_GROUPS)})
        return found


def review_stage(kept: Path, files: ReviewFiles, *, removed: Path | None = None) -> Stage:
    """Turn what people decided into verdicts, also about what a judge `removed`."""
    inputs = files.inputs() if removed is None else {**files.inputs(), "removed": removed}

    filled_in = {role: partial(named_by_content, path) for role, path in roles(ANSWERS, files.answers).items()}
    return Stage(
        "review", "review", 2,
        lambda work: review_candidates(work, kept, decisions_in(kept, files, removed), removed=removed),
        {"kept": kept, **inputs, **country_files()}, {"by": files.by, "on": files.on}, packages=("polars",),
        trees=filled_in,
    )  # fmt: skip


def named_by_content(path: Path, _: Path) -> InputRecord:
    """Name a sheet by its content: filled in where it was handed out, it is another than its stage wrote, and right."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), expected="a sheet, or an export in JSON")
    return InputRecord(digest_file(path), path.name)


def decisions_in(kept: Path, files: ReviewFiles, removed: Path | None) -> Sequence[CandidateDecision]:
    """Read all decisions, in the order in which the files are given."""
    known = known_candidates(kept, removed)
    found: list[CandidateDecision] = []
    for path in files.answers:
        if path.suffix.lower() == SHEET or files.project is None:
            found += read_candidate_sheet(path, known, by=files.by, on=files.on)
        else:
            found += decisions_of_exports([path], files.project, known, on=files.on)
    return found


# Candidates that wait for a person as tasks of Label Studio and the offline form, and the decisions that come back.

QUESTION = "decision"


def review_scheme(form: str = "people/cspace_review.yaml") -> Scheme:
    """Load the form that asks about candidates."""
    return load_model(shipped(form), Scheme)


def candidate_items(rows: Sequence[Mapping[str, Any]], scheme: Scheme) -> list[Item]:
    """Make an item of every candidate and country."""
    items = []
    for row in rows:
        shown = shown_candidate(row)
        texts = {name: shown[name] for name in scheme.fields}
        about = {"model": None, "concept": row["concept"], "country": None, "group": None, "prompt_id": None}
        items.append(Item(f"{row['concept']} {row['qid']} {row['country']}".strip(), {}, texts, None, about))
    return items


def decisions_of_exports(
    exports: Sequence[Path], project: Path, known: Known, *, on: str | None
) -> list[CandidateDecision]:
    """Read the decisions of exports; nothing is imported while anything is wrong with one of them.

    `on` is the day of annotations that have none.

    Raises:
        ConfigError: every annotation that is not an answer to a task of the project, with its place.
    """
    name, scheme, key = read_project(project)
    taken = read_exports(records_of(exports), key, name, scheme)
    problems = [
        Problem(f"{row['reason']} {row['detail']}".strip(), row["file"], row["task_number"], row["field"])
        for row in taken.quarantine
    ]
    decisions: list[CandidateDecision] = []
    path, groups = project / f"{REVIEW_GROUPS.name}.parquet", dict[str, list[tuple[str, str, str]]]()
    for group, *member in read_table(path, REVIEW_GROUPS).rows() if path.is_file() else ():
        groups.setdefault(group, []).append(tuple(member))
    for answered, row in taken.good:
        source = (answered.record.file, answered.record.number)
        (word,) = answered.answers[QUESTION]
        decided: dict[str, DecisionWord] = {known_word: known_word for known_word in get_args(DecisionWord)}
        annotation = answered.record.value["annotations"][answered.number - 1]
        when = annotation.get("updated_at") or annotation.get("created_at")
        day = (when[:10] if isinstance(when, str) else "") or on or ""
        comment = answered.comments.get(QUESTION)
        if word in decided and (problem := day_problem(day)):
            problems.append(Problem(f"{problem}; name a day with --on", *source))
            continue
        members = groups.get(row["item_id"])
        for concept, qid, country in members or [(*row["item_id"].split(" "), "")[:3]]:
            if (concept, qid) not in known:
                problems.append(Problem(f"{qid!r} is no kept candidate of {concept!r}", *source))
            elif word in decided:
                decision = (concept, qid, answered.annotator, day, decided[word], comment, source[0])
                decisions.append(CandidateDecision(*decision, country=country, group=len(members or ())))
    if problems:
        raise ConfigError(problems)
    return decisions
