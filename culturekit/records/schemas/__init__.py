"""Every table that culturekit writes, declared once; `?` marks what may be null."""

from collections.abc import Mapping

from culturekit.records.schemas import activities, captions, ground_truth, images, people, scores
from culturekit.records.schemas.activities import *  # noqa: F403 - a part gives nothing but tables, here and below
from culturekit.records.schemas.captions import *  # noqa: F403
from culturekit.records.schemas.ground_truth import *  # noqa: F403
from culturekit.records.schemas.images import *  # noqa: F403
from culturekit.records.schemas.people import *  # noqa: F403
from culturekit.records.schemas.scores import *  # noqa: F403
from culturekit.records.tables import Table

TABLES: Mapping[str, Table] = {
    table.name: table
    for part in (activities, captions, ground_truth, images, people, scores)
    for table in vars(part).values()
    if isinstance(table, Table)
}
"""By the name of the file that holds it: `candidates.parquet` holds `candidates`."""
