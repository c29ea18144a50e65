"""From a finished run to its report, a page and thumbnails beside it; scores are looked up, never computed."""

from dataclasses import replace

from culturekit.records.work import Outcome, Work
from culturekit.report.by_prompt import prompt_images, prompt_lines
from culturekit.report.countries import shares_in
from culturekit.report.data import ReportData
from culturekit.report.differences import difference_lines
from culturekit.report.extremes import extremes_in
from culturekit.report.faithfulness import faithfulness_in
from culturekit.report.gaps import gaps_in
from culturekit.report.headline import apart_in, floor_in
from culturekit.report.kernels import breakdown_of, kernel_tables
from culturekit.report.looks import looks_of, reference_pictures
from culturekit.report.making import making_in
from culturekit.report.metric_tables import metric_tables
from culturekit.report.missing import missing_lines
from culturekit.report.model_lines import in_order, model_lines
from culturekit.report.mosaic import mosaic_of
from culturekit.report.people import people_in
from culturekit.report.provenance import caveats, paid_lines, parties, stage_line, withheld
from culturekit.report.realism import realism_in
from culturekit.report.render import render
from culturekit.report.routes import routes_in
from culturekit.report.run_folders import RunFolders
from culturekit.report.shots import collect_shots
from culturekit.report.thumbnails import NO_COPY, copies, small_copy
from culturekit.report.trust import trust_in
from culturekit.report.variety import variety_in, within_in
from culturekit.report.verdict import question_about, verdict_on
from culturekit.stages import roles
from culturekit.storage.atomic import write_atomically
from culturekit.version import VERSION

__all__ = ["collect", "write_report"]


def write_report(work: Work, run: RunFolders) -> Outcome:
    """Write the report of a run."""
    data = collect(run)
    folder = work.out / "thumbnails"
    folder.mkdir(exist_ok=True)
    work.progress.begin(len(data.thumbnails), "thumbnails")
    wanted = copies(run.root, data.thumbnails, folder)
    unread = 0
    for read in work.engine.map(small_copy, wanted):
        unread += not read
        work.progress.advance(1)
    page = render(data).encode("utf-8")
    write_atomically(work.out / "report.html", page)
    counts = {"models": len(data.models), "shots": len(data.shots), "thumbnails": len(wanted), "bytes": len(page)}
    return Outcome(counts, {NO_COPY: unread} if unread else {})


def collect(run: RunFolders) -> ReportData:
    """Collect everything the page shows."""
    scores = run.scores()
    models = in_order(model_lines(run, scores))
    thumbnails: dict[str, str] = {}
    names = [line.model for line in models]
    looks = {model: looks_of(run, model) for model in names}
    kernel = run.kernel
    prompts = tuple(prompt_lines(run, names, kernel=kernel))
    data = ReportData(
        title="How diverse are the cultures these models show?",
        question=question_about(models),
        verdict=verdict_on(models, floor=floor_in(run, scores), apart=apart_in(run), withheld=[*withheld(run)]),
        models=models,
        kernel=kernel,
        size=run.size,
        confidence=run.confidence(),
        tables=tuple(kernel_tables(scores, names, size=run.size)),
        shots=tuple(collect_shots(run, thumbnails)),
        caveats=caveats(run),
        stages=tuple(stage_line(run, name) for name in run.stages),
        versions={"culturekit": VERSION, **run.manifest(roles.SCORES).packages},
        withheld=tuple(withheld(run)),
        trust=trust_in(run, scores),
        shares=shares_in(run, names),
        prompts=prompts,
        differences=tuple(difference_lines(run, kernel=kernel)),
        gaps=gaps_in(run),
        breakdown=breakdown_of(scores, names, kernel=kernel),
        mosaics=tuple(mosaic_of(run, looks, reference_pictures(run), thumbnails)),
        extremes=extremes_in(run, names),
        prompt_images=tuple(prompt_images(prompts, looks, thumbnails)),
        thumbnails=thumbnails,
        parties=tuple(parties(run)),
        paid=tuple(paid_lines(run)),
        faithfulness=faithfulness_in(run, names),
        realism=realism_in(run, names),
        variety=variety_in(run, scores, names),
        within=within_in(run, names),
        missing=tuple(missing_lines(run, scores)),
        routes=routes_in(run, names),
        making=making_in(run, names),
        people=people_in(run),
        metrics=tuple(metric_tables(run)),
    )
    return replace(data, thumbnails=dict(sorted(thumbnails.items())))
