"""The headline scores as lines of text, for a terminal."""

from collections.abc import Iterator

from culturekit.report.figures import Figure
from culturekit.report.missing import missing_lines
from culturekit.report.model_lines import HEADLINE_KERNEL, model_lines
from culturekit.report.run_folders import RunFolders
from culturekit.report.verdict import verdict_on

__all__ = ["headline_lines"]


def headline_lines(run: RunFolders) -> Iterator[str]:
    """Tell the headline scores of a run, the most diverse by mapping first."""
    models = sorted(model_lines(run, run.scores()), key=lambda line: -line.mapped.value)
    yield f"diversity VS/8, {HEADLINE_KERNEL} kernel, over all prompts, with 95 % intervals"
    audited = any(line.corrected for line in models)
    corrected = f"{'corrected diversity':<24} " if audited else ""
    yield f"{'model':<14} {'mapped diversity':<24} {corrected}{'true diversity':<24} {'quality':>8} {'images':>8}"
    for line in models:
        quality = f"{line.quality.value:.3f}" if line.quality else ""
        corrected = f"{text_of(line.corrected):<24} " if audited else ""
        yield (
            f"{line.model:<14} {text_of(line.mapped):<24} {corrected}{text_of(line.truth):<24} "
            f"{quality:>8} {line.images:>8,}"
        )
    for lacking in missing_lines(run, run.scores()):
        if lacking.prompts < lacking.prompts_asked:
            yield f"{lacking.model} rests on {lacking.prompts} of {lacking.prompts_asked} prompts: no fair match."
    verdict = verdict_on(models, floor=run.floor())
    if verdict.liar:
        yield f"{verdict.liar} is lying."
    yield from verdict.sentences


def text_of(figure: Figure | None) -> str:
    """Write a figure with its interval."""
    if figure is None:
        return "not known"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
