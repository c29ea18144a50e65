"""Answers held against their scheme: allowed, asked for, and complete."""

from collections.abc import Iterator, Mapping

from culturekit.annotate.exported_json import Mistake
from culturekit.annotate.label_studio import fixed_options
from culturekit.annotate.scheme import Criterion, Scheme

__all__ = ["Offered", "answer_mistakes", "asked", "codes_of"]

Offered = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Meanings by code, by list: the options that one item has of its own."""

Answers = Mapping[str, tuple[str, ...]]


def answer_mistakes(
    scheme: Scheme, answers: Answers, comments: Mapping[str, str], offered: Offered
) -> Iterator[Mistake]:
    """Find every answer that is not allowed, was not asked for, or is missing."""
    for criterion in scheme.criteria:
        name = criterion.name
        if not asked(criterion, answers):
            if name in answers:
                yield Mistake("answer to a question not asked", name, ", ".join(answers[name])[:200])
            if name in comments:
                yield Mistake("answer to a question not asked", criterion.comment_name, comments[name][:200])
            continue
        if name in answers:
            yield from value_mistakes(scheme, criterion, answers[name], offered)
        elif criterion.required:
            yield Mistake("required answer missing", name)
        yield from comment_mistakes(criterion, answers, comments)


def asked(criterion: Criterion, answers: Answers) -> bool:
    """Tell whether a question is asked after the answers to earlier ones."""
    return all(set(answers.get(name, ())) & set(values) for name, values in criterion.when.items())


def comment_mistakes(criterion: Criterion, answers: Answers, comments: Mapping[str, str]) -> Iterator[Mistake]:
    """Find a comment that is missing, or that no answer asked for."""
    if criterion.comment is None:
        return
    wanted = bool(set(answers.get(criterion.name, ())) & set(criterion.comment.when))
    given = criterion.name in comments
    if wanted and criterion.comment.required and not given:
        yield Mistake("required answer missing", criterion.comment_name)
    elif given and not wanted:
        yield Mistake("answer to a question not asked", criterion.comment_name, comments[criterion.name][:200])


def value_mistakes(
    scheme: Scheme, criterion: Criterion, chosen: tuple[str, ...], offered: Offered
) -> Iterator[Mistake]:
    """Find values that a question does not allow."""
    if criterion.type == "text":
        return
    allowed = codes_of(criterion, offered, scheme)
    reason = "out of range" if criterion.type == "scale" else "unknown choice"
    for value in chosen:
        if value not in allowed:
            yield Mistake(reason, criterion.name, value[:200])
    if len(chosen) > 1 and set(chosen) & set(criterion.alone):
        yield Mistake("answers that exclude each other", criterion.name, ", ".join(chosen)[:200])


def codes_of(criterion: Criterion, offered: Offered, scheme: Scheme) -> list[str]:
    """List what may be chosen of one item: options of its own, or those that are the same for all items."""
    if criterion.options_from is not None:
        return list(offered.get(criterion.options_from, {}))
    return [value for value, _ in fixed_options(criterion, scheme)]
