"""Captions, samples, translations and objects that were changed after they were made, and what finds it."""

from pathlib import Path
from shutil import copytree

import polars as pl
import pytest

from culturekit.builders.captions.cultures import culture_file
from culturekit.builders.captions.expanding import ExpandOptions
from culturekit.builders.captions.objects import ObjectsOptions, ObjectsReads
from culturekit.builders.captions.sampling import SampleOptions
from culturekit.builders.captions.translating import TranslateOptions, TranslateReads
from culturekit.generation.simulated.scenes.captions import spoken
from culturekit.pipeline.steps.caption_stages import (
    CaptionsRead,
    CultureRead,
    expand_stage,
    objects_stage,
    sample_stage,
    translate_stage,
)
from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.stages.run_stage import run_stage
from culturekit.stages.stage import Stage
from culturekit.verify.tables.check_pairs import check_expansion, check_objects, check_sample, check_translations
from tests.verify.tampering import Change, broken_by

CHECKS = {
    "expand-captions": check_expansion,
    "sample-captions": check_sample,
    "translate-captions": check_translations,
    "list-objects": check_objects,
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("captions") / "run"
    run.mkdir()
    model = "simulated?repeats=0.3"
    options = ExpandOptions(model, captions=60, encoder="letters")

    def made(stage: Stage, name: str) -> None:
        with LocalEngine(1) as engine:
            run_stage(stage, run / name, engine=engine)

    made(expand_stage(CultureRead(culture_file("chinese")), options), "captions")
    every = run / "captions" / "captions.parquet"
    made(sample_stage(CaptionsRead(every), SampleOptions(20, seed=3)), "sample")
    foreign = run.parent / "foreign.parquet"
    said = pl.col("text").map_elements(spoken, return_dtype=pl.String)
    pl.read_parquet(every).with_columns(text=said).write_parquet(foreign)
    made(translate_stage(TranslateReads(foreign), TranslateOptions(model)), "translations")
    made(objects_stage(ObjectsReads(captions=every), ObjectsOptions(model)), "objects")
    return run


def test_captions_as_they_were_made_have_no_finding(untouched: Path) -> None:
    assert broken_by(untouched, CHECKS) == []


def put(column: str, value: object, **where: object) -> Change:
    """Write something else into the first row of a kind."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        rows = frame.with_row_index("row_number")
        chosen = rows.filter(**where)["row_number"][0]
        other = pl.lit(value, frame.schema[column])
        here = pl.when(pl.col("row_number") == chosen).then(other).otherwise(pl.col(column))
        return rows.with_columns(here.alias(column)).drop("row_number")

    return change


PROPOSED = "captions/caption_proposals"
TAMPERINGS: list[tuple[str, Change, str]] = [
    ("captions/captions", put("text", "A quiet street in the rain", round=2), "is not what was proposed"),
    ("captions/captions", put("text", "A quiet street in the rain", round=0), "other seeds"),
    ("captions/captions", put("category", "language-bias", category="stereotyping", round=3), "not what was proposed"),
    ("captions/captions", lambda frame: frame.head(-1), "is not what was proposed"),
    (PROPOSED, put("similarity", 0.95, outcome="kept"), "is not 'kept'"),
    (PROPOSED, put("similarity", 0.5, outcome="like an earlier caption"), "is not 'like an earlier caption'"),
    (PROPOSED, put("nearest", "chinese-00060", outcome="same as an earlier caption"), "is not 'same as"),
    (PROPOSED, put("examples", ["chinese-00060"] * 5, position=1), "not there yet"),
    (PROPOSED, put("examples", ["chinese-00001"] * 5, position=1), "shows a caption twice"),
    ("sample/captions", lambda frame: frame.head(-1), "another sample"),
    ("sample/captions", put("text", "A quiet street in the rain"), "does not ask for the captions"),
    ("sample/prompts", put("text", "A quiet street in the rain"), "does not ask for the captions"),
    ("translations/translations", put("source", "Something else"), "is another caption"),
    ("translations/translations", put("text", " ! "), "has no translation"),
    ("objects/objects", put("probability", 0.5), "is not above 0.5"),
    ("objects/objects", put("id", "chinese-00001#7"), "not numbered"),
    ("objects/objects", lambda frame: frame.with_columns(text=pl.lit("drum")), "stands twice"),
]


@pytest.mark.parametrize(("table", "change", "said"), TAMPERINGS, ids=[f"{t}-{s}" for t, _, s in TAMPERINGS])
def test_a_changed_table_is_found(untouched: Path, tmp_path: Path, table: str, change: Change, said: str) -> None:
    run = tmp_path / "run"
    copytree(untouched, run)
    path = run / f"{table}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    assert any(said in problem for problem in broken_by(run, CHECKS))
