"""A corrected score walked back to the answers of people, and to the images that they speak for."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.cli.trace_command import trail_lines
from culturekit.core.inputs import Files
from culturekit.core.schemas import AUDITS, MATCHES
from culturekit.core.tables import read_table, write_table
from culturekit.scores.diversity import Correction
from culturekit.scores.qvs import qvs
from culturekit.trail.walk_back import find_score, walk_back
from tests.verify.test_families import made


def answers(matches: pl.DataFrame, folder: Path) -> Path:
    """Two people look at every second image: one says what the mapping says, the other that none is shown."""
    rows = [
        {"image_id": row["image_id"], "pool": "people", "annotator": person, "none_of_these": person == "ben"}
        | {name: row[name] if person == "ann" else None for name in ("artifact_id", "country", "continent")}
        for row in matches.sort("image_id").gather_every(2).to_dicts()
        for person in ("ann", "ben")
    ]
    folder.mkdir()
    return write_table(folder, AUDITS, pl.DataFrame(rows, schema=AUDITS.schema))


def test_a_score_that_is_not_corrected_has_no_people(small_run: Path) -> None:
    trail = walk_back(*find_score(f"{small_run}?metric=vs&model=broad&concept=art&kernel=country"))
    assert trail.people is None
    assert not [line for line in trail_lines(trail) if line.startswith(("people", "said", "speaks"))]


@pytest.mark.parametrize(("weights", "level"), [("[0,1,0]", "country"), ("[0,0,1]", "artifact_id")])
def test_a_corrected_score_leads_to_answers_weights_and_images(
    small_run: Path, tmp_path: Path, weights: str, level: str
) -> None:
    path = small_run / "matches-broad/matches.parquet"
    nearest = read_table(path, MATCHES).filter(pl.col("rank") == 1)
    audits = answers(nearest, tmp_path / "answers")
    stage = qvs.stage(Files([path]), audits=Files([audits]), correction=Correction(required=False))
    folder = made(stage, tmp_path / "scores")
    corrected = {
        "metric": "vs", "model": "broad", "concept": "art", "country": None, "group": None, "value": 0.5, "n": 24,
        "ci_low": 0.4, "ci_high": 0.6, "params": f'{{"labels":"corrected","weights":{weights}}}',
    }  # fmt: skip
    trail = walk_back(folder, corrected)
    people = trail.people
    assert people is not None
    assert set(people.weights.values()) == {nearest.height / (nearest.height / 2)}
    assert sum(cell.images for cell in people.cells) == nearest.height
    mapped = dict(nearest.select("image_id", level).iter_rows())
    for cell in people.cells:
        assert {mapped[image] for image in cell.audited} <= {cell.label}
        assert cell.images == list(mapped.values()).count(cell.label)
        if cell.audited:
            assert dict(cell.said) == {cell.label: len(cell.audited), "no culture shown": len(cell.audited)}
    assert trail.image_id in people.answers, "an image that people saw comes first"
    lines = list(trail_lines(trail))
    assert any(line.startswith("said       ann (people): Q") for line in lines)
    assert "said       ben (people): no culture shown" in lines
    assert any(line.startswith("speaks for 2.0 images") for line in lines)
    unseen = next(image for image in mapped if image not in people.answers)
    assert not [line for line in trail_lines(walk_back(folder, corrected, image_id=unseen)) if line.startswith("said")]
