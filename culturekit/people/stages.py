"""The stages with people in the loop: forms out, answers in, tables of ratings."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import orjson
import polars as pl
from pydantic import Field

from culturekit.builders.judging.simulated_people import AskedFor, Shown, SimulatedPeople
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import StageCommand
from culturekit.core.errors import UsageError, naming
from culturekit.core.inputs import roles
from culturekit.core.registry import Entry, Registry
from culturekit.core.schemas import (
    ANNOTATION_CHECKS,
    ANNOTATIONS,
    AUDIT_SAMPLE,
    CSPACE,
    IMAGES,
    MATCHES,
    PROMPTS,
    QUALITY,
    QUARANTINE,
    RATED_ITEMS,
    VALUES,
)
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import prompts_table, read_table, read_together, space_table, write_table
from culturekit.metrics.corrected.audit_gates import drawing_of
from culturekit.people.aggregate import (
    SIMULATED_CAVEAT,
    AggregateOptions,
    aggregate_answers,
    set_aside,
    values_of_quality,
)
from culturekit.people.export import HAND_OUT, BarePicture, ExportOptions, export_project
from culturekit.people.importing import (
    AUDIT,
    OF_SPACE,
    import_answers,
    known_items,
    own_offers,
    read_project,
    space_offers,
    wanted_lists,
)
from culturekit.people.rated_sample import Answering, rated_sample, rating_by_truth, simulated_export
from culturekit.people.scheme import Scheme, load_scheme, scheme_file
from culturekit.people.tasks import (
    OF_IMAGE,
    Item,
    gold_items,
    items_of_images,
    items_of_rows,
    known_pictures,
    listed_files,
    read_rows,
)
from culturekit.scores.answers import read_answers
from culturekit.scores.diversity import quality_by_scorer

# The stage that makes tables of what people said, and the files it reads.


@dataclass(frozen=True, slots=True)
class AggregateReads:
    """Answers that were imported, and what is held against them."""

    annotations: Annotated[Path, Field(description="What `annotate import` took in.")]
    items: Annotated[
        Path | None, Field(description="What the items are. [rated_items.parquet beside the annotations]")
    ] = None
    values: Annotated[Sequence[Path], Field(description="Values of metrics to hold against people; repeatable.")] = ()
    quality: Annotated[
        Sequence[Path], Field(description="Scores of single images to hold against people; repeatable.")
    ] = ()
    made_from: Annotated[
        Path | None,
        Field(description="The table that `annotate export --items` was given; writes task1.parquet or task2.parquet."),
    ] = None


@dataclass(frozen=True, slots=True)
class AggregateFiles(AggregateReads):
    """Files that tables of ratings are made of; what `more` answers are about lies beside them."""

    more: Sequence[Path] = ()
    quarantine: Sequence[Path] = ()
    checks: Sequence[Path] = ()

    @classmethod
    def beside(cls, given: AggregateReads, *, more: Sequence[Path] = ()) -> "AggregateFiles":
        """Name the files of answers that were imported before, with what lies beside them now."""
        folders = [path.parent for path in (given.annotations, *more)]
        aside, checks = (
            [folder / f"{table.name}.parquet" for folder in folders if (folder / f"{table.name}.parquet").is_file()]
            for table in (QUARANTINE, ANNOTATION_CHECKS)
        )
        return cls(given.annotations, given.items, given.values, given.quality, given.made_from, more, aside, checks)

    @property
    def about(self) -> Path:
        """Where the items are told."""
        return self.items or items_beside(self.annotations)

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        given = {"annotations": self.annotations, "items": self.about}
        if self.made_from is not None:
            given["made-from"] = self.made_from
        others = {
            "more": self.more, "more-items": [items_beside(path) for path in self.more], "quarantine": self.quarantine,
            "checks": self.checks, "values": self.values, "quality": self.quality,
        }  # fmt: skip
        return given | {role: path for kind, paths in others.items() for role, path in roles(kind, paths).items()}


def items_beside(annotations: Path) -> Path:
    """Name the table that says what answers are about."""
    return annotations.parent / f"{RATED_ITEMS.name}.parquet"


def aggregate_stage(files: AggregateFiles, options: AggregateOptions) -> Stage:
    """Make the tables of what people said."""

    def run(work: Work) -> Outcome:
        items = all_items([files.about, *(items_beside(path) for path in files.more)])
        metrics = [read_together(files.values, VALUES)] if files.values else []
        if files.quality:
            quality = read_together(files.quality, QUALITY)
            quality_by_scorer(quality)  # refuses what is no quality
            metrics.append(values_of_quality(quality, items))
        values = pl.concat(metrics).sort(VALUES.key) if metrics else None
        answers = read_together([files.annotations, *files.more], ANNOTATIONS, read=read_answers).sort(ANNOTATIONS.key)
        aside = set_aside(
            [read_table(path, QUARANTINE) for path in files.quarantine],
            [read_table(path, ANNOTATION_CHECKS) for path in files.checks], answers, options.keep,
        )  # fmt: skip
        done = aggregate_answers(work, answers, items, values, options, aside)
        if files.made_from is None:
            return done
        kept = read_table(work.out / f"{ANNOTATIONS.name}.parquet", ANNOTATIONS)
        tables = write_form_tables(work, kept, items, read_rows(files.made_from))
        drops = {reason: count for reason, count in sorted({**done.drops, **tables.drops}.items()) if count}
        return Outcome({**done.counts, **tables.counts}, drops, done.notes)

    settings = asdict(options)
    seed = settings.pop("seed")
    if not settings["only"]:
        del settings["only"]
    if files.made_from is not None and (plugins := FORMS.plugins()):
        settings["form_plugins"] = {name: plugin.made_of() for name, plugin in plugins.items()}
    packages = ("numpy", "polars", "scipy")
    return Stage(
        "people", "annotate-aggregate", 5, run, files.inputs, settings, {"resampling": seed}, packages=packages
    )


def aggregate_imported(given: AggregateReads, options: AggregateOptions) -> Stage:
    """Put answers together by model, concept and country.

    Ratings, shares, agreement, metrics against people.
    """
    return aggregate_stage(AggregateFiles.beside(given), options)


AGGREGATE = StageCommand(
    aggregate_imported, "--annotations rated/annotations.parquet --quality q/quality.parquet --out people"
)


class FormTables(Protocol):
    """Writes answers to a form as tables of its own, and counts what is left out.

    `answers` conforms to ANNOTATIONS, `items` to RATED_ITEMS; `rows` is what the tasks were made of.
    """

    def __call__(self, work: Work, answers: pl.DataFrame, items: pl.DataFrame, rows: pl.DataFrame) -> Outcome:
        """Write the tables."""


# The forms, by the names of their schemes, whose answers become tables of their own.
FORMS: Registry[FormTables] = Registry(
    "form with tables",
    [
        Entry("inclusion_task1", "culturekit.recipes.inclusion.people:write_task1", "which of two images is closer"),
        Entry("inclusion_task2", "culturekit.recipes.inclusion.people:write_task2", "which regions an image shows"),
    ],
    point="form",
)


def write_form_tables(
    work: Work, answers: pl.DataFrame, items: pl.DataFrame, rows: pl.DataFrame, *, asked: pl.DataFrame | None = None
) -> Outcome:
    """Write answers as the tables of their forms; also of forms to which only `asked` has answers, which are empty.

    Raises:
        UsageError: no answer is to a form that has any.
    """
    counts, drops = dict[str, int](), dict[str, int]()
    schemes = (answers if asked is None else asked)["scheme"].unique().sort().to_list()
    for scheme in (known := [name for name in schemes if name in FORMS.names()]):
        written = FORMS.load(scheme)(work, answers.filter(scheme=scheme), items, rows)
        counts, drops = {**counts, **written.counts}, {**drops, **written.drops}
    if not known:
        raise UsageError("no answers are to a form with tables of its own", expected=" or ".join(FORMS.names()),
                         found=", ".join(schemes), hint="Leave --made-from out.")  # fmt: skip
    return Outcome(counts, drops)


def all_items(paths: Sequence[Path]) -> pl.DataFrame:
    """Read what items are; two tables may know the same item, if they say the same of it."""
    table = pl.concat([read_table(path, RATED_ITEMS) for path in paths]).unique().sort(RATED_ITEMS.key)
    repeated = table.filter(table["item_id"].is_duplicated())
    if repeated.height:
        raise UsageError("two tables say different things of one item", found=repr(repeated["item_id"][0]))
    return table


ANSWERS_FILE = "answers.json"  # what simulated people answered, as an export of Label Studio


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """The files that tasks are made of."""

    images: Annotated[
        Sequence[Path], Field(description="Table of images; repeat it, such as for each model. A survey has none.")
    ] = ()
    prompts: Annotated[Path | None, Field(description="What the images were made for.")] = None
    items: Annotated[
        Path | None, Field(description="Items that show several images or have fields of their own: Parquet or CSV.")
    ] = None
    sample: Annotated[Path | None, Field(description="Only these images: what `score audit-sample` wrote.")] = None
    cspace: Annotated[Path | None, Field(description="Artifacts, countries and continents to choose from.")] = None
    matches: Annotated[
        Sequence[Path], Field(description="What the images were mapped to; decides which artifacts are offered.")
    ] = ()
    gold: Annotated[
        Path | None,
        Field(
            description="Items of which it is known what is right, put among the others, and into a --trial: rows as "
            "--items has, with right answers under the names of questions. Of an audit pictures: a list (CSV) of "
            "image, artifact, country, or images with `truth_artifact_id`. Empty cells: no culture."
        ),
    ] = None
    gold_prompts: Annotated[
        Path | None, Field(description="Prompts that name what gold pictures show, where these do not say it.")
    ] = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        names = ("prompts", "items", "sample", "cspace", "gold", "gold_prompts")
        single = {name.replace("_", "-"): getattr(self, name) for name in names}
        given = {role: path for role, path in single.items() if path is not None}
        listed = [] if self.gold is None else listed_files(self.gold)
        pictures = {f"gold-{number}": path for number, path in enumerate(listed)}
        return {**roles("images", self.images), **roles("matches", self.matches), **given, **pictures}


def export_stage(files: ExportFiles, scheme: str, options: ExportOptions, *, shortlist: int, seed: int) -> Stage:
    """Write the forms of a scheme."""
    loaded = load_scheme(scheme)
    if files.gold is None and files.gold_prompts is not None:
        raise UsageError("gold_prompts say what gold pictures show", expected="gold as well", found="no gold")

    def run(work: Work) -> Outcome:
        left_out: Counter[str] = Counter()
        images = [(path, read_table(path, IMAGES)) for path in files.images]
        items = chosen(files, items_of(work, files, images, loaded, left_out))
        homes = options.quotas.regions or sorted({item.region for item in items if item.region is not None})
        form = loaded.of_regions(homes)
        if files.gold is not None:
            gold, known = gold_of(work, files, images, form, left_out)
            images += [] if gold is None else [(files.gold, gold)]
            items = [*(item for item in items if item.item_id not in {one.item_id for one in known}), *known]
        offers = offers_of(work, files, items, form, length=shortlist, seed=seed)
        drawing = drawing_of(read_table(files.sample, AUDIT_SAMPLE)) if files.sample is not None else ""
        pictures = {
            row["image_id"]: BarePicture(row["image_id"], path.parent, row["path"], row["sha256"], path.parent)
            for path, table in images
            for row in table.filter(status="ok").iter_rows(named=True)
        }
        return export_project(work, items, pictures, form, offers, options, left_out, seed=seed, drawing=drawing)

    settings = {**asdict(options), "shortlist": shortlist}
    del settings["ranked"], settings["label_studio"]  # chosen for reviews alone
    if files.gold is None:
        del settings["gold"]  # forms without gold items are known without it
    if not options.trial:
        del settings["trial"]
    if not options.queues:
        del settings["queues"]
    if not options.quotas.everywhere:
        settings["quotas"] = {name: value for name, value in settings["quotas"].items() if name != "everywhere"}
    inputs = {**files.inputs, "scheme": scheme_file(scheme)}
    version = 5 if loaded.name == AUDIT else 4  # lists of audits are ordered otherwise since 3
    return Stage(
        "annotate", "annotate-export", version, run, inputs, settings, {"tasks": seed}, packages=("pillow", "polars")
    )


def import_stage(project: Path, exports: Sequence[Path], *, pool: str | None, distinct: bool = False) -> Stage:
    """Take in what people answered; people who answer alike are one, unless they are `distinct`."""
    if not exports:
        raise UsageError("there is nothing to import", expected="at least one JSON file of Label Studio or of the form")
    return Stage(
        "ratings", "annotate-import", 5,
        lambda work: import_answers(work, project, exports, pool=pool, distinct=distinct),
        {"project": project, **roles("export", exports)}, {"pool": pool, **({"distinct": True} if distinct else {})},
        packages=("polars",),
    )  # fmt: skip


def items_of(
    work: Work, files: ExportFiles, images: Sequence[tuple[Path, pl.DataFrame]], scheme: Scheme, left_out: Counter[str]
) -> list[Item]:
    """Make the items, from images or from rows that name them; a survey without pictures is one item."""
    if not scheme.pictures and not scheme.fields and files.items is None:
        return [Item(scheme.name, {}, {}, None, dict.fromkeys(OF_IMAGE))]
    if not images:
        raise UsageError(f"the scheme {scheme.name} shows pictures", expected="--images", found="none")
    optional = [name for name in ("concept", "country") if all(name in table.columns for _, table in images)]
    table = pl.concat([table.select(*IMAGES.schema, *optional) for _, table in images])
    repeated = table.filter(table["image_id"].is_duplicated())
    if repeated.height:
        raise UsageError("two images have one id", found=repr(repeated["image_id"][0]), expected="ids that differ")
    if files.items is not None:
        with naming(files.items):
            return items_of_rows(read_rows(files.items), table, scheme, left_out)
    prompts = None if files.prompts is None else read_table(prompts_table(files.prompts, work.scratch), PROMPTS)
    return items_of_images(table, prompts, scheme, left_out)


def gold_of(
    work: Work, files: ExportFiles, images: Sequence[tuple[Path, pl.DataFrame]], scheme: Scheme, left_out: Counter[str]
) -> tuple[pl.DataFrame | None, list[Item]]:
    """Make the gold items: of an audit pictures that are no image to judge, else rows as --items has, with answers."""
    if files.gold is not None and scheme.name != AUDIT:
        table = pl.concat([table.select(*IMAGES.schema) for _, table in images])
        with naming(files.gold):
            return None, known_items(read_rows(files.gold), table, scheme, left_out)
    if files.gold is None or files.cspace is None:
        raise UsageError("gold items of an audit need a space that says what is right", expected="--cspace")
    space = read_table(space_table(files.cspace, work.scratch), CSPACE)
    with naming(files.gold):
        pictures = known_pictures(files.gold, space, files.gold_prompts)
    twice = pictures.filter(pl.col("image_id").is_in(pl.concat([table["image_id"] for _, table in images]).implode()))
    if twice.height:
        raise UsageError(
            "a gold picture is one of the images to judge", found=repr(twice["image_id"].sort()[0]),
            expected="ids that differ",
        )  # fmt: skip
    return pictures, gold_items(pictures, space, scheme, left_out)


def chosen(files: ExportFiles, items: list[Item]) -> list[Item]:
    """Keep the items of the sample, each for its look."""
    if files.sample is None:
        return items
    sample = read_table(files.sample, AUDIT_SAMPLE)
    looks = sample["look"] if "look" in sample.columns else pl.repeat(0, sample.height, eager=True)
    wanted = dict(zip(sample["image_id"], looks.fill_null(0), strict=True))
    found = [replace(item, look=wanted[item.item_id]) for item in items if item.item_id in wanted]
    if len(found) < len(wanted):
        missing = min(set(wanted) - {item.item_id for item in found})
        raise UsageError(
            "a sampled image is not among the images", found=repr(missing), expected="--images of all models"
        )
    return found


def offers_of(
    work: Work, files: ExportFiles, items: Sequence[Item], scheme: Scheme, *, length: int, seed: int
) -> Mapping[str, Any]:
    """Find the answers that differ from item to item, where the scheme has such."""
    wanted = wanted_lists(scheme)
    if not wanted:
        if files.matches:
            raise UsageError(f"matches decide which artifacts a form offers, and {scheme.name} offers none",
                             expected="a form such as audit, or no --matches")  # fmt: skip
        return {}
    if not wanted <= set(OF_SPACE):
        if files.items is None:
            raise UsageError(f"the scheme {scheme.name} needs lists of each item", expected="--items with them")
        return own_offers(read_rows(files.items), items, scheme)
    if files.cspace is None:
        raise UsageError(f"the scheme {scheme.name} lets people choose from a cultural space", expected="--cspace")
    space = read_table(space_table(files.cspace, work.scratch), CSPACE)
    matches = read_together(files.matches, MATCHES) if files.matches else None
    return space_offers(items, scheme, space, matches, length=length, seed=seed)


def rated_sample_stage(
    images: list[Path], prompts: Path, *, count: int, seed: int, each: int = 1, countries: Sequence[str] = (),
    like: Path | None = None,
) -> Stage:  # fmt: skip
    """Draw the images that people are to rate, so many of each model and prompt.

    With `countries` those of their prompts alone, and `like` another sample those of the prompts that it has.
    """

    def run(work: Work) -> Outcome:
        table, asked = read_together(images, IMAGES), read_table(prompts, PROMPTS)
        asked = asked.filter(pl.col("country").is_in(list(countries))) if countries else asked
        if like is not None:
            asked = asked.join(read_table(like, AUDIT_SAMPLE), on="prompt_id", how="semi")
        rng = np.random.default_rng(seed)
        sample = rated_sample(table, asked, count=count, rng=rng, each=each)
        write_table(work.out, AUDIT_SAMPLE, sample)
        return Outcome({"audit_sample": sample.height, "prompts": sample["prompt_id"].n_unique()})

    inputs = {**roles("images", images), "prompts": prompts} | ({} if like is None else {"like": like})
    options: dict[str, object] = {"prompts": count, **({} if each == 1 else {"each": each})}
    options |= {"countries": sorted(countries)} if countries else {}
    return Stage("rated-sample", "rated-sample", 1, run, inputs, options, {"sample": seed})


def simulated_answers_stage(
    project: Path, truth: list[Path], prompts: Path, cspace: Path, how: SimulatedPeople, *, seed: int
) -> Stage:
    """Let simulated people fill in a project that was handed out, by what is shown and what each prompt asks for."""

    def answering(scheme: Scheme) -> Answering:
        known = read_together(truth, MATCHES).select("image_id", "artifact_id", "country", "continent")
        shown = {image: Shown(*labels) for image, *labels in known.iter_rows()}
        places = read_table(cspace, CSPACE).select("country", "continent").unique().sort("country", "continent")
        continents = dict(places.iter_rows())
        asked = read_table(prompts, PROMPTS).select("prompt_id", "artifact_id", "country").iter_rows()
        meant = {prompt: AskedFor(artifact, country, continents.get(country)) for prompt, artifact, country in asked}
        return rating_by_truth(scheme, shown, meant, how, seed=seed)

    inputs = {**roles("truth", truth), "prompts": prompts, "cspace": cspace}
    return filled_in_stage("simulated-answers", project, inputs, answering, how, seed=seed)


def filled_in_stage(
    kind: str, project: Path, inputs: Mapping[str, Path], answering: Callable[[Scheme], Answering],
    how: SimulatedPeople, *, seed: int,
) -> Stage:  # fmt: skip
    """Let simulated people answer all tasks of a project, and write an export; `inputs` are what they know."""

    def run(work: Work) -> Outcome:
        _, scheme, key = read_project(project)
        folder = project / HAND_OUT / "label-studio"
        projects = orjson.loads((folder / "projects.json").read_bytes())
        tasks = [task for one in projects for task in orjson.loads((folder / one["tasks"]).read_bytes())]
        answered = simulated_export(tasks, key, scheme, answering(scheme), how, seed=seed)
        write_atomically(work.out / ANSWERS_FILE, orjson.dumps(answered, option=orjson.OPT_INDENT_2) + b"\n")
        given = sum(len(task["annotations"]) for task in answered)
        return Outcome({"tasks": len(answered), "annotations": given}, notes={"caveat": SIMULATED_CAVEAT})

    return Stage("simulated-answers", kind, 1, run, {"project": project, **inputs}, asdict(how), {"answers": seed})
