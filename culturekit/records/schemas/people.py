"""The tables of what people are asked, and what they answer."""

from culturekit.records.tables import declare

__all__ = [
    "ANNOTATIONS",
    "AUDITS",
    "AUDIT_SAMPLE",
    "SURVEY_CODES",
    "TASK1",
    "TASK2",
    "TRIPLETS",
]

AUDIT_SAMPLE = declare(
    "audit_sample",
    key="image_id",
    columns="image_id str, model str, concept str?, prompt_id str?, stratum str, chance f64",
)
"""Which images people should look at; `stratum` is the mapped label the draw was spread over, `chance` the
probability with which each image was drawn."""

AUDITS = declare(
    "audits",
    key="image_id pool annotator",
    columns="""
    image_id str, pool str, annotator str, artifact_id str?, country str?, continent str?, none_of_these bool
    """,
)
"""What people of a pool say an image shows; `none_of_these` is an answer, and has no labels."""

ANNOTATIONS = declare(
    "annotations",
    key="item_id annotator scheme criterion",
    columns="""
    item_id str, annotator str, annotator_region str, in_region bool?, scheme str, criterion str,
    value f64?, choice str?, text str?, seconds f64?, flags list[str]
    """,
)
"""What annotators answered: one row per item, annotator and criterion."""

TRIPLETS = declare(
    "triplets",
    key="triplet_id",
    columns="""
    triplet_id str, combo str, object str, region str, reference_source str, source str, pick str,
    reference_id str, first_id str, second_id str, first_distance f64, second_distance f64
    """,
)
"""Triplets to be shown: a reference and two images to compare it with, and their squared distances from it. `pick`
says whether the reference was taken for its near or its far neighbour."""

TASK1 = declare(
    "task1",
    key="triplet_id annotator_id",
    columns="""
    triplet_id str, combo str, object str, region str, reference_source str, source str,
    reference_id str, first_id str, second_id str, annotator_id str, annotator_loc str,
    similar_id str?, appealing_id str?, confidence str?, shown list[str]?
    """,
)
"""What people said of triplets of images: `source` made the two images compared, `reference_source` the reference
(`real` for photographs). `similar_id` and `appealing_id` name the one chosen; `shown` lists the images of the three
that show the object, and is null where that was not asked. Places on the screen are not recorded: they were drawn."""

TASK2 = declare(
    "task2",
    key="img_path object region annotator_id source",
    columns="""
    img_path str, object str, region str?, annotator_id str, annotator_loc str, shown bool,
    object_regions list[str], background_regions list[str], source str
    """,
)
"""What people saw in single images: whether the object is shown, and the regions (`af`, `eu`, `sea`, or `na` for none)
that the object and the background could be from. `region` is the photograph's, or the prompt's; null where it named
none. `source` is `real` or the model."""

SURVEY_CODES = declare(
    "survey_codes",
    key="response_id topic code coder",
    columns="response_id str, location str, topic str, coder str, code str, present bool",
)
"""How coders read answers to a survey: whether a theme is present in a response about a topic."""
