"""Rules said on the command line, over those of a root config."""

from collections.abc import Mapping

from culturekit.kg.concepts import Concept

__all__ = ["overridden"]


def overridden(concept: Concept, rules: Mapping[str, object]) -> Concept:
    """Put rules, by the name of their key, in the place of a concept's own; those that are None change nothing."""
    return concept.model_copy(update={name: rule for name, rule in rules.items() if rule is not None})
