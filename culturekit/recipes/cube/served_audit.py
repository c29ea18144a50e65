"""The audit of a finished run, in the run's folder: drawn once, answered in browsers, and taken in by the next run.

Who asks to see it is told how its intervals narrow while people answer.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import msgspec
import polars as pl

from culturekit.core import roles
from culturekit.core.choices import SHORTLIST
from culturekit.core.digests import digest_file, read_manifest
from culturekit.core.errors import CultureKitError, UsageError, check_choice, counted, counted_reason
from culturekit.core.inputs import Files
from culturekit.core.run import RECIPE_RECORD, Run, run_stage
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, IMAGES, MATCHES
from culturekit.core.stage import Engine, Progress, Quiet, Work, hold
from culturekit.core.tables import read_table
from culturekit.metrics.corrected.audit_gates import of_batches
from culturekit.metrics.corrected.audit_sampling import Drawing
from culturekit.metrics.corrected.looks import Goal, Pair, lower_of, planned_looks
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.people.answer_desk import AnswerDesk, open_desk
from culturekit.people.answers import AnswerJournal, journal_in
from culturekit.people.export import ExportOptions
from culturekit.people.importing import AUDIT, import_answers
from culturekit.people.stages import ExportFiles, export_stage, import_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.cube.keys import Recipe
from culturekit.recipes.cube.nested_keys import Audit
from culturekit.report.report_stage import folders_of
from culturekit.report.run_folders import HEADLINE_KERNEL, RunFolders
from culturekit.report.thumbnails import shown_by
from culturekit.scores.audited import draw_audit_sample
from culturekit.scores.corrected import looked_at, score_corrected
from culturekit.scores.diversity import Correction, QvsOptions
from culturekit.scores.qvs import samples_of

logger = logging.getLogger(__name__)

POOL = "people"  # Whose answers these are, unless the recipe names the pool

EVERY = 30  # Answers after which intervals are worked out again


@dataclass(frozen=True, slots=True)
class AuditSize:
    """How many images of each model are looked at, by how many people each, and which known pictures are among them.

    None for what is usual or drawn: of known pictures the references, where they say what they show. `drawing` says
    whether single images are drawn or whole batches; after `looks` images of each model somebody looks whether the
    `goal` is reached.
    """

    images: int | None = None
    people: int | None = None
    gold: Path | None = None
    drawing: Drawing | None = None
    looks: tuple[int, ...] = ()
    goal: Goal | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown way to draw, or a goal that nobody looks for."""
        if self.drawing is not None:
            check_choice("--drawing", self.drawing, get_args(Drawing))
        if self.goal is not None:
            check_choice("--goal", self.goal, get_args(Goal))
            if not self.looks:
                raise UsageError("a goal is reached at a look", expected="--look", found=f"--goal {self.goal} alone")


class RecordedAudit(msgspec.Struct):
    """The part of a recipe that says whose answers it takes."""

    file: str | None = None


class RecordedRecipe(msgspec.Struct):
    """The part of a recipe record that an audit needs."""

    seed: int = 0
    audit: RecordedAudit | None = None


@contextmanager
def form_desk(project: Path, region: str | None = None) -> Iterator[AnswerDesk]:
    """Open the desk of an exported form, alone in its folder, for people of a region where there are several."""
    with hold(project.parent / f".{project.name}.serving.lock"), AnswerJournal(journal_in(project)) as journal:
        desk = open_desk(project, journal)
        places = {sheet: desk.key[tasks[0]]["annotator_region"][0] for sheet, tasks in desk.sheets.items()}
        known = sorted(set(places.values()))
        if region is not None or len(known) > 1:
            if region not in known:
                raise UsageError(
                    "each sheet is for people of one region", where=str(project), found=region or "nothing",
                    expected=f"--region with one of {', '.join(known)}",
                )  # fmt: skip
            desk.sheets = {sheet: tasks for sheet, tasks in desk.sheets.items() if places[sheet] == region}
        yield desk


@contextmanager
def audit_desk(root: Path, size: AuditSize, *, engine: Engine, progress: Progress) -> Iterator[AnswerDesk]:
    """Draw the audit of a run unless it is drawn, and open the desk that takes its answers, alone in the folder."""
    run = folders_of(root)
    record = msgspec.json.decode((root / RECIPE_RECORD).read_bytes(), type=RecordedRecipe)
    if record.audit is not None and record.audit.file is not None:
        raise UsageError(
            "this run takes the answers of a file", where=str(root), found=f"audit.file: {record.audit.file}",
            hint="Leave it out of the recipe, and run that again, to have people answer here.",
        )  # fmt: skip
    with hold(root / f".{roles.TO_AUDIT.folder()}.serving.lock"):
        if read_manifest(run.folder(roles.TO_AUDIT)) is None:
            draw(run, size, seed=record.seed, engine=engine, progress=progress)
        else:
            check_size(run, size)
            check_images(run)
        with AnswerJournal(journal_of(run)) as journal:
            desk = open_desk(run.folder(roles.TO_AUDIT), journal)
            sample = read_table(run.table(roles.AUDITED_SAMPLE), AUDIT_SAMPLE)
            if planned_looks(sample) is not None:
                looks = dict(sample.select("image_id", "look").iter_rows())
                items = {task: row["item_id"][0] for task, row in desk.key.items()}
                desk.ask_in_looks({task: looks[item] for task, item in items.items() if item in looks})
            yield desk


def draw(run: RunFolders, size: AuditSize, *, seed: int, engine: Engine, progress: Progress) -> None:
    """Draw images of all models, and make their form."""
    matches, images = list(run.tables(roles.MATCHES).values()), list(run.tables(roles.IMAGES).values())
    sample, form = run.folder(roles.AUDITED_SAMPLE), run.folder(roles.TO_AUDIT)
    drawing = partial(
        draw_audit_sample.stage, Files(matches), drawing=size.drawing or "images", looks=size.looks,
        goal=size.goal or "order", seed=seed,
    )  # fmt: skip
    stage = drawing() if size.images is None else drawing(images=size.images)
    run_stage(stage, sample, engine=engine, progress=progress, replace=True)
    quotas = Quotas() if size.people is None else Quotas(size.people)
    files = ExportFiles(
        images, run.table(roles.PROMPTS), sample=run.table(roles.AUDITED_SAMPLE), cspace=run.table(roles.CSPACE),
        matches=matches, **({"gold": size.gold} if size.gold else known_references(run)),
    )  # fmt: skip
    stage = export_stage(files, AUDIT, ExportOptions(quotas), shortlist=SHORTLIST, seed=seed)
    manifest = run_stage(stage, form, engine=engine, progress=progress, replace=True).manifest
    for reason, count in manifest.drops.items():
        logger.warning("Drawn, and not asked about: %s", counted_reason(count, reason))


def known_references(run: RunFolders) -> dict[str, Path]:
    """Name the references, and the prompts that say what they show: among the others, they tell how raters do."""
    references, fewest = shown_by(run), ExportOptions().gold
    known = references is not None and "truth_artifact_id" in references
    if references is None or not known or references["truth_artifact_id"].count() < fewest:
        return {}
    named = {"gold_prompts": run.table(roles.REFERENCE_PROMPTS)} if run.has(roles.REFERENCE_PROMPTS) else {}
    return {"gold": run.table(roles.REFERENCES), **named}


def check_size(run: RunFolders, size: AuditSize) -> None:
    """Refuse to change the size of an audit that is drawn: its answers would be about something else."""
    sample, form = run.manifest(roles.AUDITED_SAMPLE), run.manifest(roles.TO_AUDIT)
    known = form.inputs["gold"].sha256 if "gold" in form.inputs else None
    same = "the pictures it was drawn with" if size.gold is None or digest_file(size.gold) != known else size.gold
    checked = (
        ("images", size.images, sample.options["images"]), ("people", size.people, form.options["quotas"]["inside"]),
        ("gold", size.gold, same), ("drawing", size.drawing, sample.options.get("drawing", "images")),
        ("look", list(size.looks) or None, sample.options.get("looks", [])),
        ("goal", size.goal, sample.options.get("goal", "order")),
    )  # fmt: skip
    for name, wanted, there in checked:
        if wanted not in (None, there):
            raise UsageError(
                "the audit of this run is drawn already", where=str(run.folder(roles.TO_AUDIT)),
                expected=f"--{name} {there}, or nothing", found=f"--{name} {wanted}",
                hint=f"For another audit, move this folder and {roles.AUDITED_SAMPLE.folder()} away, answers and all.",
            )  # fmt: skip


def check_images(run: RunFolders) -> None:
    """Refuse to ask about images that the run has no more; tell which models came later."""
    there = {name: digest_file(path) for name, path in run.by_model(roles.IMAGES).items()}
    inputs = run.manifest(roles.TO_AUDIT).inputs
    asked = {record.sha256 for role, record in inputs.items() if role.startswith(IMAGES.name)}
    later = ", ".join(name for name, content in there.items() if content not in asked)
    away = f"For another audit, move this folder and {roles.AUDITED_SAMPLE.folder()} away, answers and all."
    if not asked <= set(there.values()):
        raise UsageError(
            "the audit of this run was drawn from images that it no longer has", where=str(run.folder(roles.TO_AUDIT)),
            found=f"other images of {later}" if later else "a model less", hint=away,
        )  # fmt: skip
    if later:
        logger.warning("Nobody is asked about %s: the audit in %s is older. %s", later, roles.TO_AUDIT.folder(), away)


def journal_of(run: Run) -> Path:
    """Name the file of the answers: where a form is replaced, it stays."""
    return journal_in(run.folder(roles.TO_AUDIT))


def with_answers(recipe: Recipe, run: Run) -> Recipe:
    """Take in what people answered in the folder of a run, in place of simulated raters; a file of answers leads."""
    audit, journal = recipe.audit or Audit(), journal_of(run)
    if audit.file is not None or not journal.is_file() or not journal.stat().st_size:
        return recipe
    stage = import_stage(run.folder(roles.TO_AUDIT), [journal], pool=audit.pool or POOL)
    paths = {"file": str(run.add(stage, roles.AUDITED_ANSWERS)), "sample": str(run.table(roles.AUDITED_SAMPLE))}
    return recipe.model_copy(update={"audit": audit.model_copy(update=paths)})


class Narrowing:
    """Works out corrected intervals after every so many answers, beside people's work.

    Who answers learns the widest interval; models are named to `tell` alone.
    """

    def __init__(self, run: RunFolders, desk: AnswerDesk, engine: Engine, tell: Callable[[str], None]) -> None:
        """Begin with what is answered."""
        self.run, self.desk, self.engine, self.tell = run, desk, engine, tell
        self.looked_at, self.look_lock = 0 if desk.looks else desk.answered, threading.Lock()

    def heard(self) -> None:
        """Take note of an answer; look again if enough are new and nobody is looking."""
        now, enough = (self.desk.whole_look, 1) if self.desk.looks else (self.desk.answered, EVERY)
        if now - self.looked_at >= enough and self.look_lock.acquire(blocking=False):
            self.looked_at = now
            threading.Thread(target=self.look, name="intervals").start()

    def look_now(self) -> None:
        """Look, after who is looking."""
        self.look_lock.acquire()
        self.looked_at = self.desk.whole_look if self.desk.looks else self.desk.answered
        self.look()

    def look(self) -> None:
        """Work the intervals out, and tell; whoever calls holds the lock, and it is free then."""
        try:
            for line in self.at_looks() if self.desk.looks else self.lines():
                self.tell(line)
        except CultureKitError as error:
            self.tell(f"no intervals yet: {error}")
        finally:
            self.look_lock.release()

    def at_looks(self) -> Iterator[str]:
        """Say how far the looks that are answered reach the goal, and ask no more about models that are done.

        No interval is told: what is said stays true, whenever people stop.
        """
        matches = pl.concat([self.run.matches(model).select(list(MATCHES.schema)) for model in self.run.models])
        sample = samples_of(Files([self.run.table(roles.AUDITED_SAMPLE)]))
        begun = max((look for task, look in self.desk.looks.items() if self.desk.counts[task]), default=0)
        whole = min(self.desk.whole_look, begun)  # what nobody is to answer any more is no look
        planned = planned_looks(sample)
        if not whole or planned is None or sample is None:
            yield "no look yet: its images are not all answered"
            return
        size = int(self.run.manifest(roles.SCORES).options["size"])
        pairs, left = looked_at(
            matches, self.audits(), sample, options=QvsOptions(size=size), correction=Correction(required=False)
        )
        done = set(sample.filter(~pl.col("model").is_in(left))["image_id"])
        later = (task for task, look in self.desk.looks.items() if look > whole)
        self.desk.settle(task for task in later if self.desk.key[task]["item_id"][0] in done)
        yield look_line(pairs, left, planned, whole, self.desk.wanted - self.desk.answered)

    def lines(self) -> Iterator[str]:
        """Say the corrected diversity of each model, as far as answers carry it."""
        options = self.run.manifest(roles.SCORES).options
        kernels, size = (STANDARD_KERNELS[HEADLINE_KERNEL],), int(options["size"])
        matches = pl.concat([self.run.matches(model).select(list(MATCHES.schema)) for model in self.run.models])
        found = score_corrected(
            matches, self.audits(), None, options=QvsOptions(kernels=kernels, size=size),
            correction=Correction(required=False), sample=self.sample(),
        )  # fmt: skip
        overall = pl.col("concept").is_null()
        scores = found.scores.filter(overall | ~overall.any().over("model"))
        widths = (scores["ci_high"] - scores["ci_low"]).to_list()
        self.desk.aside = f"; the widest of {len(widths)} intervals is {max(widths):.3f}" if widths else ""
        yield f"after {counted(self.desk.answered, 'answers')}, corrected diversity ({HEADLINE_KERNEL} kernel):"
        for row in scores.iter_rows(named=True):
            about = f"{row['model']}, {row['concept'] or 'all concepts'}"
            marks = ", ".join(json.loads(row["params"]).get("marked", ()))
            yield f"  {about:<32} {row['value']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]  {marks}".rstrip()
        for reason, count in found.left_out.items():
            yield f"  {reason} ({count})"

    def sample(self) -> pl.DataFrame | None:
        """Read which whole batches were drawn; of single images that is not asked before all are answered."""
        drawn = samples_of(Files([self.run.table(roles.AUDITED_SAMPLE)]))
        return drawn if of_batches(drawn) else None

    def audits(self) -> pl.DataFrame:
        """Import the answers that there are, as the run will."""
        project, journal = self.run.folder(roles.TO_AUDIT), self.desk.journal.path
        with TemporaryDirectory(prefix="culturekit-audit-") as folder:
            import_answers(Work({}, Path(folder), Path(folder), self.engine, Quiet()), project, [journal], pool=None)
            return read_table(Path(folder) / f"{AUDITS.name}.parquet", AUDITS)


def look_line(pairs: Sequence[Pair], left: Sequence[str], planned: tuple[list[int], Goal], look: int, more: int) -> str:
    """Say what a look at the answers settles, and how much is left to ask."""
    counts, goal = planned
    states = [pair.state for pair in pairs]
    settled, apart = states.count("settled"), states.count("not told apart")
    what = "which model shows most" if goal == "top" else "the order"
    known = f"{settled} of {counted(len(pairs), 'pairs')} settled" + (f", {apart} not told apart" if apart else "")
    if goal == "top":
        out = len({lower_of(pair) for pair in pairs if pair.state in {"dropped", "settled"}})
        known = "one model shows most" if settled else f"{counted(out, 'models')} out of the race for the top"
    if left:
        ending = f"at most {counted(more, 'more answers')} about {counted(len(left), 'models')}"
    elif goal == "order" and apart:
        ending = f"nothing more to ask: {what} is settled as far as {counts[-1]} images of each model can settle it"
    else:
        ending = f"nothing more to ask about {what}"
    return f"look {look} of {len(counts)}, {counts[look - 1]} images of each model: {known}; {ending}"
