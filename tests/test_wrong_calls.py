"""Wrong calls of the library's front door: each is refused as a ValueError, in words that say what was expected."""

import inspect
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import culturekit as ck
from culturekit import metrics as ck_metrics
from culturekit.config.load import shipped_recipes

FLAT, POINTS = np.zeros((1, 2)), np.zeros((3, 2))

metrics: Any = ck_metrics
FRONT: Any = ck  # The front door to people whose tools do not check types

BARE: Any = pl.DataFrame(schema=["image_id", "artifact_id"])

# What is said, and the call
WRONG: dict[str, Callable[[], Any]] = {
    "labels must be at least one (continent, country, artifact); found []": lambda: ck.vendi([]),
    "weights must be three numbers of at least 0 that sum to 1, for (continent, country, artifact); found (1, 1)":
        lambda: ck.vendi(["a", "b"], weights=(1, 1)),
    "q must be a number above 0, or infinity; found -1": lambda: ck.vendi(["a", "b"], q=-1),
    "quality must be of length 2, like what it belongs to; found 'length 1'":
        lambda: ck.qvs([("Europe", "FR", "a"), ("Europe", "FR", "b")], [0.5], weights=(0, 0, 1)),
    "real and fake must come from one extractor; expected vectors of 2 numbers, like real, found 3 in fake":
        lambda: ck.prdc(POINTS, np.zeros((3, 3)), k=2),
    "a must be at least 2 rows; found '1'": lambda: ck.frechet_distance(FLAT, POINTS),
    "prompts must be one per value, of length 2; found 'shape (1,)'":
        lambda: ck.interval([1.0, 2.0], prompts=["a"], repeats=[0, 1]),
    "there is no search 'fais'; expected auto or faiss or faiss-gpu or numpy or torch. Did you mean 'faiss'?":
        lambda: ck.searcher(np.eye(3, dtype=np.float32), engine="fais"),
    "nowhere.parquet: there is no matches table; expected the table matches. Run the stage that writes it first.":
        lambda: ck.read_table(Path("nowhere.parquet"), ck.TABLES["matches"]),
    f"nowhere.yaml: there is no such recipe; expected a YAML file, or one of: {', '.join(shipped_recipes())}":
        lambda: ck.load_recipe("nowhere.yaml"),
    "no recipe; expected what load_recipe gives, found 'cube'": lambda: FRONT.run_recipe("cube", "run", engine=None),
    "the stage n answers with something else; expected an Outcome, found None": lambda: FRONT.run_stage(
        FRONT.Stage("n", "n", 1, lambda _: None, {}), tempfile.mkdtemp() + "/n", engine=ck.LocalEngine(1)
    ),
    "labels[1] must be a text, a whole number or None; found nan": lambda: FRONT.vendi(["a", float("nan")]),
    "weights must be 'continent' or 'country' or 'artifact' or 'hierarchical' or 'uniform'; found 'land'":
        lambda: ck.vendi(["a", "b"], weights="land"),
    "q must be a number above 0, or infinity; found '2'": lambda: FRONT.vendi(["a", "b"], q="2"),
    "the vectors cannot be searched; expected float32 (n, dim), found list": lambda: FRONT.searcher([[1.0, 0.0]]),
    "no such number of workers; expected a whole number, found '2'": lambda: FRONT.LocalEngine("2"),
    "matches must be a table with the columns continent, country, model, rank, too; found ['image_id', 'artifact_id']":
        lambda: ck.vendi_corrected(BARE, BARE, weights="country", rng=np.random.default_rng(0)),
    "vendi: missing a required argument: 'labels'; expected "
    "vendi(labels, *, weights=..., q=..., missing=..., normalize_labels=...)": lambda: FRONT.vendi(),
    "qvs: missing a required argument: 'weights'; expected "
    "qvs(labels, quality, *, weights, q=..., missing=..., normalize_labels=...)": lambda: FRONT.qvs(["a"], [1.0]),
    "prdc: got an unexpected keyword argument 'n'; expected prdc(real, fake, *, k=..., cache=...)":
        lambda: FRONT.prdc(POINTS, POINTS, n=2),
    "read_table: missing a required argument: 'table'; expected read_table(path, table)": lambda: FRONT.read_table("x"),
    "real must be real numbers; found complex numbers": lambda: FRONT.prdc(POINTS * 1j, POINTS, k=2),
    "a must be real numbers; found complex numbers": lambda: FRONT.frechet_distance([[1j, 2.0]], POINTS),
    "rng must be a generator of NumPy; expected numpy.random.default_rng(SEED), found 7":
        lambda: FRONT.vendi_corrected(BARE, BARE, weights="country", rng=7),
    "rng must be a generator of NumPy; expected numpy.random.default_rng(SEED), found None":
        lambda: metrics.bootstrap([1.0, 2.0], statistic=np.mean, rng=None),
    "runs/none: there are no scores of such a stage; expected a finished run, and the folder of a stage that scores, "
    "found *": lambda: ck.Run(Path("runs/none")).scores(),
    "a chart needs rows; expected 2 values in each, one a column":
        lambda: ck.plot.curves({"flux": [0.5]}, ["q = 1", "q = 2"]),
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_call_says_what_was_expected(said: str) -> None:
    with pytest.raises(ValueError) as caught:
        WRONG[said]()
    assert str(caught.value) == said
    assert isinstance(caught.value, ck.CultureKitError)


def test_what_people_write_is_taken(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    triples = [("Asia", "JP", "obi"), ("Asia", "JP", "sari"), ("Europe", "IT", "obi")]
    frame = pandas.DataFrame(triples, columns=["continent", "country", "artifact"])
    assert ck.vendi(triples, weights="country") == ck.vendi(frame, weights=(0, 1, 0)) == ck.vendi(frame["country"])
    assert (
        FRONT.vendi(pl.Series(["a", None, None])) == FRONT.vendi(pandas.Series(["a", None, None])) == pytest.approx(3)
    )
    batches = ck.vendi_batches(triples, size=3, weights=["country", "artifact"])
    assert batches.shape == (2, 1)
    assert batches[0] == ck.vendi_batches(triples, size=3, weights="country")
    values: dict[str, Any] = {"prompts": ["a", "a", "b", "b"], "repeats": [0, 1, 0, 1]}
    for series in (pandas.Series, pl.Series):
        made = {name: series(each) for name, each in values.items()}
        assert FRONT.interval([0.5, 0.6, 0.7, 0.8], **made) == FRONT.interval([0.5, 0.6, 0.7, 0.8], **values)
    path = tmp_path / "audits.parquet"
    pl.DataFrame(schema=ck.TABLES["audits"].schema).write_parquet(path)
    assert ck.read_table(str(path), "audits").equals(ck.read_table(path, ck.TABLES["audits"]))
    assert FRONT.Run(str(tmp_path)).root == tmp_path


def test_hints_are_short_and_public_functions_travel_to_other_processes() -> None:
    assert str(inspect.signature(ck.prdc)) == (
        "(real: ArrayLike, fake: ArrayLike, *, k: int = 5, "
        "cache: MutableMapping[tuple[str, int], NDArray[float64]] | None = None) -> PRDC"
    )
    longest = max(len(str(inspect.signature(getattr(ck_metrics, name)))) for name in ck_metrics.__all__
                  if inspect.isfunction(getattr(ck_metrics, name)))  # fmt: skip
    assert longest < 500
    for function in (ck.vendi, ck.find_score, ck_metrics.compare):
        assert pickle.loads(pickle.dumps(function)) is function
