"""The tables of what people are asked, and what they answer."""

from culturekit.records.tables import declare

AUDIT_SAMPLE = declare(
    "audit_sample",
    key="image_id",
    columns="image_id str, model str, concept str?, prompt_id str?, stratum str, chance f64",
)
"""Which images people should look at; `stratum` is the mapped label the draw was spread over, `chance` the
probability with which each image was drawn."""

SCENE_ITEMS = declare(
    "scene_items",
    key="item_id",
    columns="""
    item_id str, image_id str, model str, prompt_id str, concept str?, country str, country_name str, group str?,
    activity str, descriptors list[str], dimensions list[str]
    """,
)
"""Images of activities that people are to mark: which of the phrases each shows, and which of them matter. `dimensions`
says which each phrase belongs to."""

OBJECT_ITEMS = declare(
    "object_items",
    key="item_id",
    columns="item_id str, image_id str, img_path str, model str, source str, prompt_id str, object str, region str?",
)
"""Images of which people say what they see in them: `source` is the model, or `real`; `region` is null where the prompt
named none."""

PAIR_ITEMS = declare(
    "pair_items",
    key="item_id",
    columns="item_id str, image_id str, model str, caption str, translation str",
)
"""Pictures with captions that people are to rate in their translation."""

AUDITS = declare(
    "audits",
    key="image_id pool annotator",
    columns="""
    image_id str, pool str, annotator str, artifact_id str?, country str?, continent str?, none_of_these bool
    """,
    optional="""
    drawing str?, none_means str?, gold bool?, known_artifact_id str?, known_country str?, known_continent str?,
    offered_first bool?, as_mapped bool?
    """,
)
"""What people of a pool say an image shows; `none_of_these` is an answer. `none_means` says which: `no culture shown`,
`cannot tell`, or `not in the list` (then the continent may be known); null where the form did not tell these apart.
`drawing` names the drawn sample that they were asked about. Answers about `gold` pictures, which are none of a model's,
stand beside what these are known to show, `known_` labels, all null for no culture. `offered_first` says that the form
listed first what the image was mapped to, `as_mapped` that this was the answer; null where the form did not know, the
latter also where it did not list that."""

ANNOTATIONS = declare(
    "annotations",
    key="item_id annotator scheme criterion",
    columns="""
    item_id str, annotator str, annotator_region str, in_region bool?, scheme str, criterion str,
    value f64?, choice str?, text str?, seconds f64?, flags list[str]
    """,
)
"""What annotators answered: one row per item, annotator and criterion."""

ANNOTATION_CHECKS = declare(
    "annotation_checks",
    key="task annotator criterion",
    columns="""
    task str, kind str, item_id str, annotator str, annotator_region str, scheme str, criterion str,
    choice str?, text str?, expected str?, held bool?, seconds f64?
    """,
)
"""Answers to attention checks and to items asked again (`kind` is `check` or `repeat`): they are in no average.
`expected` is what the check asked for, or what was answered the first time; `held` says whether the answer keeps to
it."""

ANNOTATION_KEY = declare(
    "annotation_key",
    key="task",
    columns="""
    task str, part str, kind str, item_id str, repeat_of str?, expected str?, annotator_region str, in_region bool?,
    slots u8, pictures list[str], places list[str], files list[str], options str, content str,
    model str?, concept str?, country str?, group str?, prompt_id str?
    """,
)
"""What the blinded tasks of an annotation project stand for: keep it from annotators. `pictures` are image ids in the
order of their `places` on the screen, `files` the blinded names; `options` (JSON) tells what codes of options mean,
`content` is the hash of everything that the task shows. `slots` annotators of the region are to answer the task."""

RATED_ITEMS = declare(
    "rated_items",
    key="item_id",
    columns="item_id str, model str?, concept str?, country str?, group str?, prompt_id str?",
)
"""What the items of annotations are: the model that made them, and the place of the prompt."""

QUARANTINE = declare(
    "quarantine",
    key="file task_number annotation_number reason field",
    columns="""
    file str, task_number u32, annotation_number u32, task str?, item_id str?, annotator str?, reason str, field str,
    detail str, raw str
    """,
)
"""Answers that were not taken over, one row per mistake; numbers count from 1 in the file, annotation 0 is the task
itself. `raw` is the annotation as it came (the first 20,000 characters)."""

RATING_TABLE = declare(
    "rating_table",
    key="scheme criterion pool model concept country",
    columns="""
    scheme str, criterion str, pool str, model str, concept str?, country str?, mean f64, sd f64?, within f64?,
    items u64, annotators u64, answers u64, mark str?
    """,
)
"""Mean ratings by model, concept and country, within each pool; concept null is over all concepts. `sd` is over items,
`within` the mean deviation of an item's own annotators; `mark` says `below 3` or `below 2`."""

CHOICE_TABLE = declare(
    "choice_table",
    key="scheme criterion pool model concept country choice",
    columns="""
    scheme str, criterion str, pool str, model str, concept str?, country str?, choice str, rate f64, items u64,
    answers u64
    """,
)
"""The share of each choice, such as of yes, by model, concept and country, within each pool."""

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
