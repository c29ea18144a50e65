"""What annotators are asked, as data: a form whose parts fit together."""

from pydantic import model_validator

from culturekit.annotate.scheme_parts import Criterion, Filters, SchemeParts
from culturekit.annotate.scheme_rules import scheme_mistakes

__all__ = ["Criterion", "Filters", "Scheme"]


class Scheme(SchemeParts):
    """A form as a whole."""

    @model_validator(mode="after")
    def fits_together(self) -> "Scheme":
        """Refuse a scheme whose parts contradict each other, with all the reasons."""
        mistakes = scheme_mistakes(self)
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return self

    def criterion(self, name: str) -> Criterion:
        """Find a question by name."""
        return next(criterion for criterion in self.criteria if criterion.name == name)
