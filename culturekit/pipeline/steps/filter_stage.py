"""The stages from candidates to what a judge keeps of them, and to what a model names and checks besides."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.annotate.export import PROJECT_FILE, ExportOptions, export_project
from culturekit.annotate.importing import candidate_items, decisions_of_exports, review_scheme
from culturekit.annotate.tasks import Quotas
from culturekit.builders.completing.completion import (
    CompletionInputs,
    CompletionPilot,
    CompletionPlan,
    PlannedCells,
    complete,
    plan_completion,
    prepare,
    try_cells,
)
from culturekit.builders.completing.completion_names import CompletionLimits, cells_of, wordings
from culturekit.builders.completing.completion_rounds import CellState
from culturekit.builders.completing.item_facts import ItemNames
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
from culturekit.builders.filtering.cspace_filter import (
    TASK,
    FilterPlan,
    PilotOutcome,
    ask_pilot,
    filter_candidates,
    plan_filter,
    wording,
)
from culturekit.errors import UsageError
from culturekit.families.handles.inputs import roles, roles_of
from culturekit.kg.concepts import Concept, RootChoice, Roots
from culturekit.kg.countries import country_files
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.polite_source import check_contact, check_url
from culturekit.kg.redirects import load_successors
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import asking_stage, judged_concepts, scratch
from culturekit.records.choices import KgSource, VerdictWord
from culturekit.records.schemas import ANNOTATION_KEY, CANDIDATES, DROPS, REMOVED
from culturekit.records.work import Outcome, Work
from culturekit.registry import needing
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, StageCommand, Typed
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import InputRecord, digest_bytes, digest_file
from culturekit.storage.package_data import shipped
from culturekit.storage.tables import TableSlices, slices_of

# The stages from the roots of concepts to candidates: over a graph, or over what an endpoint answers.

EXTRACT_DEFAULTS = ExtractOptions()


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where facts come from: a graph, or an endpoint that is told who asks."""

    graph: Annotated[Path | None, Field(description="Graph store that `kg ingest` wrote.")] = None
    source: Annotated[KgSource, Field(description="Where facts come from: a graph, or an endpoint.")] = "dump"
    endpoint: Annotated[str | None, Field(description="URL of the SPARQL endpoint, for --source sparql.")] = None
    contact: Annotated[
        str | None, Field(description="Mail address or URL that the endpoint is told, for --source sparql.")
    ] = None
    cache: Annotated[Path | None, Field(description="Folder that keeps the endpoint's replies for other runs too.")] = (
        None
    )


def extract_stated(given: FactSource, roots: RootChoice, options: ExtractOptions) -> Stage:
    """Walk the graph from roots and write the candidates."""
    return of_endpoint(given, roots, options) if given.source == "sparql" else of_graph(given, roots, options)


EXTRACT = StageCommand(extract_stated, "--graph graph --roots cuisine --out candidates")


def of_graph(given: FactSource, roots: RootChoice, options: ExtractOptions) -> Stage:
    """Walk a graph; what only an endpoint needs is refused."""
    if given.graph is None:
        raise UsageError("there is nothing to walk", expected="--graph, or --source sparql with --endpoint")
    if (given.endpoint, given.contact, given.cache) != (None, None, None):
        raise UsageError("--endpoint, --contact and --cache go with --source sparql")
    return extract_stage(given.graph, roots.concepts(), options, successors=roots.successors)


def of_endpoint(given: FactSource, roots: RootChoice, options: ExtractOptions) -> Stage:
    """Ask an endpoint, which has to be named and told who asks."""
    if given.graph is not None:
        raise UsageError("--graph goes with --source dump")
    if options.semantics == "authors":
        raise UsageError("--semantics authors needs a whole graph", expected="--source dump")
    if given.endpoint is None or given.contact is None:
        raise UsageError(
            "an endpoint is asked by its URL, and is told whom to write to when something goes wrong",
            expected="--endpoint URL and --contact MAIL_OR_URL",
        )
    concepts = roots.concepts()
    return sparql_stage(
        given.endpoint, concepts, options, contact=given.contact, cache=given.cache, successors=roots.successors
    )


def extract_stage(
    graph: Path,
    concepts: Sequence[Concept],
    options: ExtractOptions = EXTRACT_DEFAULTS,
    *,
    successors: Path | None = None,
) -> Stage:
    """Walk a graph from the roots of concepts; `successors` is a file that names the heirs of historic countries."""
    heirs, files = heirs_in(successors)
    return Stage(
        "candidates",
        "extract",
        2,
        lambda work: extract(work, graph, concepts, options, successors=heirs),
        {"graph": graph, **country_files(), **files},
        {**described(concepts), **options.settings()},
        packages=("numpy", "polars", "scipy"),
    )


def sparql_stage(
    endpoint: str,
    concepts: Sequence[Concept],
    options: ExtractOptions = EXTRACT_DEFAULTS,
    *,
    contact: str,
    cache: Path | None = None,
    successors: Path | None = None,
) -> Stage:
    """Walk what an endpoint knows from the roots of concepts; replies outlive a cut run, with a cache any run."""
    with needing("kg", "--source sparql"):
        from culturekit.kg.exchange.sparql import SparqlClient, extract_from_endpoint

    check_url(endpoint)
    check_contact(contact)
    heirs, files = heirs_in(successors)

    def run(work: Work) -> Outcome:
        with SparqlClient(endpoint, contact, cache or work.scratch / "replies") as client:
            return extract_from_endpoint(work, client, concepts, options, successors=heirs)

    settings = {"endpoint": endpoint, **described(concepts), **options.settings()}
    return Stage("candidates", "extract-sparql", 2, run, {**country_files(), **files}, settings)


def heirs_in(successors: Path | None) -> tuple[Mapping[int, int], dict[str, Path]]:
    """Load which country stands for which, and name the file as an input, where there is one."""
    return ({}, {}) if successors is None else (load_successors(successors), {"successors": successors})


def described(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give the concepts as they stand in a manifest; the words of prompts decide nothing before the prompts."""
    return {"concepts": {concept.concept: concept.model_dump(mode="json", exclude={"prompts"}) for concept in concepts}}


@dataclass(frozen=True, slots=True)
class FilterReads:
    """Candidates, and where they come from."""

    candidates: Annotated[Path, Field(description="Table that `kg extract` wrote.")]
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: it tells the judge what their classes are called.")
    ] = None

    def table(self, folder: Path) -> TableSlices:
        """Open the candidates, in a folder for what has to be sorted."""
        return slices_of(self.candidates, CANDIDATES, scratch=folder)

    def labels(self, table: TableSlices) -> dict[str, str]:
        """Name the classes of candidates, as far as the graph can."""
        return {} if self.graph is None else GraphTables(self.graph).class_names(table.slices(("p31", "p279")))


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """What candidates are judged for, and by whom."""

    roots: Roots
    judge: Annotated[
        str, Field(description="Who judges, as a SPEC: rules, openai:MODEL, google:MODEL, replay:FOLDER."), Typed("llm")
    ]


def filter_stage(given: FilterReads, options: FilterOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Judge candidates, and keep the reason of each drop."""
    client, concepts = CLIENTS.make(options.judge), options.roots

    def run(work: Work) -> Outcome:
        table = given.table(work.scratch)
        return filter_candidates(work, table, concepts, client, llm=llm, labels=given.labels(table))

    def plan(out: Path, _: object) -> FilterPlan:
        with scratch() as folder:
            table = given.table(folder)
            labels, journal = given.labels(table), journal_for(out)
            return plan_filter(table, concepts, client, labels=labels, journal=journal, batch=llm.batch)

    def pilot(work: Work, size: int) -> PilotOutcome:
        table = given.table(work.scratch)
        return ask_pilot(work, table, concepts, client, size=size, llm=llm, labels=given.labels(table))

    stage = Stage(
        "filter",
        "filter",
        4,
        run,
        {**roles_of(given), **country_files()},
        {"task": TASK, "wording": digest_bytes(wording().encode()), **judged_concepts(concepts)},
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, options.judge, client, unit="candidates", plan=plan, pilot=pilot, go_on=llm.go_on)


FILTER = AskingCommand(
    filter_stage,
    f"--candidates candidates/candidates.parquet --roots cuisine --llm {quoted('text-small')} --out kept --budget 20",
    pilot="Ask about so many candidates only, then say what the rest would cost.",
    again="Judge",
)


LIMITS = CompletionLimits()


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """What a collection is completed with, by whom, and how far."""

    roots: Roots
    proposer: Annotated[
        str, Field(description="Who proposes and checks, as a SPEC: openai:MODEL, google:MODEL, rules."), Typed("llm")
    ]
    limits: CompletionLimits = LIMITS


def complete_stage(given: CompletionInputs, options: CompletionOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Complete a collection."""
    client, concepts, limits = CLIENTS.make(options.proposer), options.roots, options.limits

    def plan(out: Path, tried: CompletionPilot | None) -> CompletionPlan:
        """Say what can be asked at most: with the names that are there, or before they are known."""
        cells = cells_of(concepts)
        with scratch() as folder:
            if given.kept.is_file():
                completion = prepare(replace(given, graph=None).open(folder), concepts, cells, limits)
                planned = PlannedCells(completion.states, limits, completion.names)
            else:
                states = [CellState(cell, (), limits) for cell in cells]
                planned = PlannedCells(states, limits, ItemNames(concepts, None), known=False)
            checked = () if tried is None else tried.tried.checked
            return plan_completion(planned, client, journal=journal_for(out), batch=llm.batch, pilot=checked)

    def pilot(work: Work, size: int) -> CompletionPilot:
        return try_cells(work, given, concepts, client, size=size, limits=limits, llm=llm)

    stage = Stage(
        "completion",
        "completion",
        2,
        lambda work: complete(work, given, concepts, client, limits=limits, llm=llm),
        {**roles_of(given), **country_files()},
        {
            "limits": asdict(limits),
            "wordings": {task: digest_bytes(text.encode()) for task, text in wordings().items()},
            **described(concepts),
        },
        packages=("msgspec", "polars"),
    )
    return asking_stage(
        stage, options.proposer, client, unit="pairs", plan=plan, pilot=pilot, ahead=True, go_on=llm.go_on
    )


@dataclass(frozen=True, slots=True)
class SharedBudget(LlmOptions):
    """How answers are bought from a budget that other stages pay from, too."""

    beside: Annotated[
        tuple[Path, ...],
        Field(description="Folder of another paid stage, such as the filter's, under the same budget. Repeatable."),
        Typed(needs="budget"),
    ] = ()


def complete_filtered(given: CompletionInputs, options: CompletionOptions, llm: SharedBudget) -> Stage:
    """Complete a collection by what a model says is missing.

    A second question checks each name.
    """
    beside = given.kept.parent / f"{DROPS.name}.parquet"
    found = beside if given.drops is None and beside.is_file() else given.drops
    return complete_stage(replace(given, drops=found), options, llm)


COMPLETE = AskingCommand(
    complete_filtered,
    "--kept kept/kept.parquet --candidates candidates/candidates.parquet --graph graph --roots cuisine "
    f"--llm {quoted('text-small')} --out completion --budget 20",
    plan="Say what it could ask and cost; nothing is sent.",
    pilot="Ask one round about so many pairs only, then say what the rest can cost.",
)


# The stages in which people decide about candidates: sheet and forms out, decisions in, verdicts from them.

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

    inputs = {"kept": kept, "scheme": shipped("annotate/cspace_review.yaml"), **beside, **country_files()}
    settings = {**asdict(options), **({} if list(verdicts) == ["review"] else {"verdicts": list(verdicts)})}
    return Stage("review-export", "review-export", 2, run, inputs, settings, packages=("polars",))


def removed_beside(kept: Path) -> Path | None:
    """Find the table of what the judge removed beside that of what it kept."""
    path = kept.parent / f"{REMOVED.name}.parquet"
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
