"""Every check, in the order in which mends are made."""

from culturekit.audit.check import Check
from culturekit.audit.checks import (
    balance,
    concepts_named,
    countries_named,
    identifiers,
    item_countries,
    name_concepts,
    names_usable,
    near_duplicates,
    negative_prompts,
    prompt_lengths,
    repeated_rows,
    statements,
    templates_fit,
    two_concepts,
    unicode_slips,
    white_space,
)
from culturekit.audit.findings import Code

__all__ = ["CHECKS", "CODES"]

CHECKS: tuple[Check, ...] = (
    unicode_slips.CHECK,
    white_space.CHECK,
    countries_named.CHECK,
    concepts_named.CHECK,
    identifiers.CHECK,
    statements.CHECK,
    negative_prompts.CHECK,
    names_usable.CHECK,
    name_concepts.CHECK,
    item_countries.CHECK,
    templates_fit.CHECK,
    repeated_rows.CHECK,
    two_concepts.CHECK,
    prompt_lengths.CHECK,
    near_duplicates.CHECK,
    balance.CHECK,
)

CODES: tuple[Code, ...] = tuple(code for check in CHECKS for code in check.codes)
