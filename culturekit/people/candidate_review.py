"""The stages in which people decide about candidates: sheets and forms out, decisions in, verdicts from them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from culturekit.builders.filtering.candidate_review import (
    CANDIDATE_SHEET,
    CandidateDecision,
    candidate_sheet,
    check_day,
    known_candidates,
    read_candidate_sheet,
    review_candidates,
    waiting,
)
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import VerdictWord
from culturekit.core.digests import InputRecord, digest_file
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles
from culturekit.core.package_data import shipped
from culturekit.core.schemas import ANNOTATION_KEY, REMOVED
from culturekit.core.stage import Stage
from culturekit.core.table import Table
from culturekit.core.work import Outcome, Work
from culturekit.kg.countries import country_files
from culturekit.people.export import PROJECT_FILE, ExportOptions, export_project
from culturekit.people.importing import candidate_items, decisions_of_exports, review_scheme
from culturekit.people.tasks import Quotas

ANSWERS, SHEET = "answers", ".csv"

PER_SHEET = 200


def review_export_stage(
    kept: Path, *, reviewers: int = 1, verdicts: Sequence[VerdictWord] = ("review",), removed: Path | None = None
) -> Stage:
    """Write the candidates that wait for a person as a sheet, as tasks of Label Studio and as an offline form.

    `verdicts` chooses others, so that a person can overrule a judge; `removed` has those that it removed.
    """
    options = ExportOptions(Quotas(reviewers), per_sheet=PER_SHEET, checks=0, repeats=0)
    beside = {} if removed is None else {"removed": removed}

    def run(work: Work) -> Outcome:
        rows, scheme = waiting(kept, verdicts, removed=removed), review_scheme()
        write_atomically(work.out / CANDIDATE_SHEET, candidate_sheet(rows))
        return export_project(work, candidate_items(rows, scheme), {}, scheme, {}, options, Counter(), seed=0)

    inputs = {"kept": kept, "scheme": shipped("people/cspace_review.yaml"), **beside, **country_files()}
    settings = {**asdict(options), **({} if list(verdicts) == ["review"] else {"verdicts": list(verdicts)})}
    del settings["label_studio"]
    return Stage("review-export", "review-export", 2, run, inputs, settings, packages=("polars",))


def table_beside(kept: Path, table: Table = REMOVED) -> Path | None:
    """Find another table of the judge beside that of what it kept."""
    path = kept.parent / f"{table.name}.parquet"
    return path if path.is_file() else None


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
        read_with = {} if not exports or self.project is None else project_files(self.project)
        return {**roles(ANSWERS, self.answers), **read_with}


def project_files(project: Path) -> dict[str, Path]:
    """Name the files of a project that its answers are read with; the sheet beside them may be filled in meanwhile."""
    return {"project": project / PROJECT_FILE, "key": project / f"{ANNOTATION_KEY.name}.parquet"}


def review_stage(kept: Path, files: ReviewFiles, *, removed: Path | None = None) -> Stage:
    """Turn what people decided into verdicts, also about what a judge `removed`."""
    inputs = files.inputs() if removed is None else {**files.inputs(), "removed": removed}
    filled_in = {role: partial(named_by_content, path) for role, path in roles(ANSWERS, files.answers).items()}
    return Stage(
        "review",
        "review",
        2,
        lambda work: review_candidates(work, kept, decisions_in(kept, files, removed), removed=removed),
        {"kept": kept, **inputs, **country_files()},
        {"by": files.by, "on": files.on},
        packages=("polars",),
        trees=filled_in,
    )


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
