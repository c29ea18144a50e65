"""Which part of a root config each stage depends on, as it stands in its manifest.

A stage that named the whole config would be made again for a key that it never reads.
"""

from collections.abc import Mapping, Sequence

from culturekit.kg.concepts import Concept

__all__ = ["judged_concepts", "released_concepts"]


def judged_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what rules and judge read: languages, countries, and what the roots are called."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                "roots": [{"qid": root.qid, "label": root.label} for root in concept.roots],
            }
            for concept in concepts
        }
    }


def released_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what a release reads: countries, languages, and the subconcepts that roots stand for, in their order."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                "roots": [
                    {"qid": root.qid, "subconcept": root.subconcept} for root in concept.roots if root.subconcept
                ],
            }
            for concept in concepts
        }
    }
