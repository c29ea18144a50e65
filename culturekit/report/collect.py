"""From a finished run to the data of its report; scores are looked up, never computed."""

from culturekit.report.by_prompt import prompt_lines
from culturekit.report.countries import shares_in
from culturekit.report.data import ReportData
from culturekit.report.differences import difference_lines
from culturekit.report.faithfulness import faithfulness_in
from culturekit.report.kernels import kernel_tables
from culturekit.report.making import making_in
from culturekit.report.model_lines import HEADLINE_KERNEL, model_lines
from culturekit.report.people import people_in
from culturekit.report.provenance import caveats, stage_line, withheld
from culturekit.report.realism import realism_in
from culturekit.report.run_folders import RunFolders
from culturekit.report.shots import collect_shots
from culturekit.report.trust import trust_in
from culturekit.report.variety import variety_in, within_in
from culturekit.report.verdict import verdict_on
from culturekit.version import VERSION

__all__ = ["collect"]


def collect(run: RunFolders) -> ReportData:
    """Collect everything the page shows."""
    scores = run.scores()
    models = tuple(sorted(model_lines(run, scores), key=lambda line: -line.mapped.value))
    thumbnails: dict[str, str] = {}
    shots = tuple(collect_shots(run, thumbnails))
    return ReportData(
        title="How diverse are the cultures these models show?",
        question=f"Which of these {in_words(len(models))} models is lying?",
        verdict=verdict_on(models, floor=run.floor()),
        models=models,
        kernel=HEADLINE_KERNEL,
        tables=tuple(kernel_tables(scores, [line.model for line in models])),
        shots=shots,
        caveats=caveats(run),
        stages=tuple(stage_line(run, name) for name in run.stages),
        versions={"culturekit": VERSION, **run.manifest("scores").packages},
        thumbnails=dict(sorted(thumbnails.items())),
        withheld=tuple(withheld(run)),
        trust=trust_in(run, scores),
        shares=shares_in(run, [line.model for line in models]),
        prompts=tuple(prompt_lines(run, [line.model for line in models], kernel=HEADLINE_KERNEL)),
        faithfulness=faithfulness_in(run, [line.model for line in models]),
        differences=tuple(difference_lines(run, kernel=HEADLINE_KERNEL)),
        making=making_in(run, [line.model for line in models]),
        realism=realism_in(run, [line.model for line in models]),
        variety=variety_in(run, scores, [line.model for line in models]),
        within=within_in(run, [line.model for line in models]),
        people=people_in(run),
    )


def in_words(number: int) -> str:
    """Write a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else str(number)
