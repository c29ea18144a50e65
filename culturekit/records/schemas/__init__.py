"""Every table that culturekit writes, declared once; `?` marks what may be null."""

from collections.abc import Mapping

from culturekit.records.schemas.ground_truth import (
    AUTHORS_ROWS,
    CANDIDATES,
    CSPACE,
    DESCRIPTORS,
    DIFF,
    DROPS,
    ITEMS,
    KEPT,
    PROMPTS,
    QUESTIONS,
    STATEMENTS,
    STEREOTYPES,
)
from culturekit.records.schemas.images import ARTIFACTS, IMAGES, JUDGMENTS, MATCHES, QUALITY, VECTOR_IDS
from culturekit.records.schemas.people import ANNOTATIONS, AUDIT_SAMPLE, AUDITS, SURVEY_CODES, TASK1, TASK2, TRIPLETS
from culturekit.records.schemas.scores import (
    DESCRIPTOR_MATCHES,
    DISTRIBUTIONS,
    EXAGGERATIONS,
    SCORES,
    SELECTION,
    VALUES,
    YES_BY_SCORE,
)
from culturekit.records.tables import Table

__all__ = [
    "ANNOTATIONS",
    "ARTIFACTS",
    "AUDITS",
    "AUDIT_SAMPLE",
    "AUTHORS_ROWS",
    "CANDIDATES",
    "CSPACE",
    "DESCRIPTORS",
    "DESCRIPTOR_MATCHES",
    "DIFF",
    "DISTRIBUTIONS",
    "DROPS",
    "EXAGGERATIONS",
    "IMAGES",
    "ITEMS",
    "JUDGMENTS",
    "KEPT",
    "MATCHES",
    "PROMPTS",
    "QUALITY",
    "QUESTIONS",
    "SCORES",
    "SELECTION",
    "STATEMENTS",
    "STEREOTYPES",
    "SURVEY_CODES",
    "TABLES",
    "TASK1",
    "TASK2",
    "TRIPLETS",
    "VALUES",
    "VECTOR_IDS",
    "YES_BY_SCORE",
]

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        ANNOTATIONS,
        ARTIFACTS,
        AUDITS,
        AUDIT_SAMPLE,
        AUTHORS_ROWS,
        CANDIDATES,
        CSPACE,
        DESCRIPTORS,
        DESCRIPTOR_MATCHES,
        DIFF,
        DISTRIBUTIONS,
        DROPS,
        EXAGGERATIONS,
        IMAGES,
        ITEMS,
        JUDGMENTS,
        KEPT,
        MATCHES,
        PROMPTS,
        QUALITY,
        QUESTIONS,
        SCORES,
        SELECTION,
        STATEMENTS,
        STEREOTYPES,
        SURVEY_CODES,
        TASK1,
        TASK2,
        TRIPLETS,
        VALUES,
        VECTOR_IDS,
        YES_BY_SCORE,
    )
}
"""By the name of the file that holds it: `candidates.parquet` holds `candidates`."""
