"""An explanation in lines, for people."""

from collections.abc import Iterator

from culturekit.kg.looking.explanation import CountrySaid, Explanation, PathStep, StepSaid

__all__ = ["explain_lines"]


def explain_lines(explanation: Explanation) -> Iterator[str]:
    """Tell an explanation: the verdict and its reasons first, then roots, countries and paths."""
    name = titled(explanation.qid, explanation.label)
    yield f"{name} is {'' if explanation.verdict == 'in' else 'not '}an artifact of {explanation.concept}"
    yield from (f"  because {reason.text}" for reason in explanation.reasons)
    if explanation.description:
        yield f"described as  {explanation.description}"
    if explanation.place:
        yield f"in the dump   {explanation.place}"
    for root in explanation.roots:
        yield f"root          {titled(root.qid, root.label)} at hop {root.hop} of {root.limit}"
    for country in explanation.countries:
        yield f"country       {country_text(country)}"
    yield paths_text(explanation)
    for number, path in enumerate(explanation.paths, 1):
        yield f"path {number}: {path.hop} hop{'' if path.hop == 1 else 's'}, {'open' if path.open else 'cut'}"
        yield from (f"  {step_text(step)}" for step in path.steps)


def paths_text(explanation: Explanation) -> str:
    """Say how many paths there are, and how many are told."""
    opened = number_text(explanation.open_paths, more=explanation.more_open_paths)
    cut = number_text(explanation.cut_paths, more=explanation.more_cut_paths)
    shown = len(explanation.paths)
    rest = "" if shown == explanation.open_paths + explanation.cut_paths else f", of which {shown} are shown"
    return f"paths         {opened} open and {cut} cut within the limits of their roots{rest}"


def number_text(count: int, *, more: bool) -> str:
    """Write a count that may have been stopped."""
    return f"at least {count:,}" if more else f"{count:,}"


def country_text(country: CountrySaid) -> str:
    """Tell the statement of a country."""
    value = titled(country.value, country.label) if country.value else country.snak
    said = StepSaid(country.property, country.rank, country.qualified, country.ended, country.counts)
    scope = "" if country.in_scope or country.value is None else ", out of scope"
    return f"{value} by {said_text(said)}{scope}"


def step_text(step: PathStep) -> str:
    """Tell a step."""
    said = "; ".join(said_text(statement) for statement in step.said)
    place = f"  [{step.place}]" if step.place else "  [only mentioned in the dump]"
    cut = f"  CUT: {step.cut}" if step.cut else ""
    return f"{titled(step.qid, step.label)}{'  by ' + said if said else ''}{place}{cut}"


def said_text(said: StepSaid) -> str:
    """Tell a statement: property, rank, and what is special about it."""
    marks = [said.rank]
    if said.qualified:
        marks.append("qualified")
    if said.ended:
        marks.append("ended")
    if not said.counts:
        marks.append("does not count")
    return f"{said.property} ({', '.join(marks)})"


def titled(qid: str | None, label: str | None) -> str:
    """Write an item with its label."""
    return f"{qid} ({label})" if label else f"{qid}"
