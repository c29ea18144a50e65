"""Two implementations of one page of formulas: what the metrics score, the oracles score again."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.inputs import Files
from culturekit.core.schemas import AUDITS, IMAGES, MATCHES, PROMPTS, QUALITY
from culturekit.core.table import Table
from culturekit.core.tables import write_table
from culturekit.metrics.corrected.audit_gates import marks_of
from culturekit.scores.diversity import NO_CORRECTION, Correction, QvsOptions
from culturekit.scores.qvs import qvs
from tests.conftest import stage_here
from tests.effort import THOROUGH
from tests.oracles.corrected_scores import told_apart
from tests.oracles.rater_errors import marks_of as recounted
from tests.oracles.scored_again import scored_again
from tests.verify.forging import change_table, renew_inputs

COUNTRIES = {"JP": "Asia", "IN": "Asia", "FR": "Europe", "IT": "Europe", "NG": "Africa", "BR": "Americas"}
KERNELS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0), (0.2, 0.3, 0.5))


def filled(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    columns = {**table.columns, **{name: c for name, c in table.optional.items() if rows and name in rows[0]}}
    blank: dict[str, Any] = {"countries": [], "score": 0.5, "margin": 0.1, "country_margin": 0.1, "rank": 1}
    blank |= {"path": "", "rewriter": "off", "provider_params": "{}", "sha256": "", "width": 1, "height": 1}
    rows = [{name: row.get(name, blank.get(name)) for name in columns} for row in rows]
    return pl.DataFrame(rows, schema={name: column.dtype for name, column in columns.items()}, orient="row")


class World:
    """Random images of two models and two concepts, some without a label, some that abstain, some never made."""

    def __init__(self, root: Path, *, prompts: int = 2, repeats: int = 6) -> None:
        self.root, self.rng = root, np.random.default_rng(5)
        self.images: list[dict[str, Any]] = []
        self.matches: list[dict[str, Any]] = []
        for model, spread in (("wide", 1.0), ("tight", 0.3)):
            for concept in ("art", "cuisine"):
                for prompt in range(prompts):
                    for repeat in range(repeats):
                        for slot in range(8):
                            self.add(model, spread, concept, f"{concept}-{prompt}", repeat, slot)
        for name, table, rows in (("images", IMAGES, self.images), ("matches", MATCHES, self.matches)):
            self.write(name, table, rows)

    def write(self, folder: str, table: Table, rows: list[dict[str, Any]]) -> Path:
        (self.root / folder).mkdir(exist_ok=True, parents=True)
        return write_table(self.root / folder, table, filled(table, rows))

    def label(self, spread: float) -> tuple[str, str]:
        country = list(COUNTRIES)[min(int(self.rng.exponential(2 * spread)), len(COUNTRIES) - 1)]
        return country, f"{country}-{self.rng.integers(4)}"

    def add(self, model: str, spread: float, concept: str, prompt: str, repeat: int, slot: int) -> None:
        image = f"{model}-{prompt}-{repeat}-{slot}"
        place: dict[str, Any] = {"image_id": image, "model": model, "concept": concept}
        place |= {"prompt_id": prompt, "repeat": repeat, "slot": slot}
        made = self.rng.random() > 0.03
        self.images.append({**place, "status": "ok" if made else "refused", "country": None})
        if not made:
            return
        country, artifact = self.label(spread)
        name = f"  {artifact.upper()} " if self.rng.random() < 0.2 else artifact
        unknown = self.rng.random() < 0.04
        row: dict[str, Any] = {
            **place, "artifact_id": artifact, "artifact": name, "country": country, "continent": COUNTRIES[country],
        }  # fmt: skip
        if unknown:
            row |= {"artifact_id": None, "artifact": None, "country": None, "continent": None}
        abstained = bool(self.rng.random() < 0.05)
        self.matches.append({**row, "abstained": abstained, "method": "nearest"})

    def quality(self, known: float = 1.0) -> Path:
        rows = [
            {"image_id": row["image_id"], "scorer": scorer, "value": float(self.rng.random())}
            for row in self.matches[3:]
            if known == 1 or self.rng.random() < known
            for scorer in ("one", "two")
        ]
        return self.write("quality", QUALITY, rows)

    def audits(self, raters: int, accuracy: float) -> Path:
        rows = []
        for number, row in enumerate(self.matches):
            for rater in range(raters if number % 2 == 0 else 0):
                said = row
                if row["artifact_id"] is None or self.rng.random() > accuracy:
                    country, artifact = self.label(1.0)
                    said = {"artifact_id": artifact, "country": country, "continent": COUNTRIES[country]}
                none = bool(row["artifact_id"] is None)
                labels = {name: None if none else said[name] for name in ("artifact_id", "country", "continent")}
                rows.append({
                    "image_id": row["image_id"], "pool": "us", "annotator": f"r{rater}", "none_of_these": none, **labels
                })  # fmt: skip
        return self.write("audits", AUDITS, rows)

    def prompts(self) -> Path:
        rows = [
            {"prompt_id": prompt, "text": prompt, "benchmark": "cube", "kind": "k", "language": "en",
             "template_id": "t", "country": "JP" if prompt.startswith("art") else "FR"}
            for prompt in sorted({row["prompt_id"] for row in self.images})
        ]  # fmt: skip
        return self.write("prompts", PROMPTS, rows)

    def verified(
        self, options: QvsOptions, correction: Correction = NO_CORRECTION, prompts: Path | None = None, **more: Path
    ) -> list[dict[str, Any]]:
        files = {role: Files([path]) for role, path in more.items()}
        matches = Files([self.root / "matches/matches.parquet"])
        stage = qvs.stage(matches, **files, prompts=prompts, correction=correction, options=options)
        stage_here(stage, self.root / "scores")
        return scored_again(self.root / "scores")


def corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row["about"] for row in rows if row["about"].get("labels") == "corrected"]


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, 3.5, float("inf")])
@pytest.mark.parametrize("missing", ["distinct", "equal"])
def test_orders_kernels_and_missing_labels(tmp_path: Path, q: float, missing: Any) -> None:
    world = World(tmp_path)
    options = QvsOptions(KERNELS, q=q, missing=missing, partial="paper", confidence=0.9)
    rows = world.verified(options, quality=world.quality())
    assert {row["metric"] for row in rows} == {"quality", "vs", "qvs"}


def test_the_population_of_prompts(tmp_path: Path) -> None:
    world = World(tmp_path, prompts=24, repeats=3)
    world.verified(QvsOptions(KERNELS[:2], target="population"))


def test_within_countries(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = world.verified(QvsOptions(KERNELS, within="country"), prompts=world.prompts())
    assert {row["country"] for row in rows} == {None, "JP", "FR"}


@pytest.mark.slow
@pytest.mark.parametrize(("raters", "accuracy"), [(1, 0.85), (3, 0.97)] if THOROUGH else [(1, 0.85)])
def test_corrected_diversity(tmp_path: Path, raters: int, accuracy: float) -> None:
    world = World(tmp_path)
    audits = world.audits(raters, accuracy)
    answer = world.verified(QvsOptions(KERNELS), audits=audits, correction=Correction(seed=3), quality=world.quality())
    assert len(corrected(answer)) == 2 * 3 * len(KERNELS) * 3


@pytest.mark.parametrize("seed", range(12))
def test_what_stands_beside_corrected_numbers(tmp_path: Path, seed: int) -> None:
    """Raters, gold items and lists of all kinds: both say the same of what nobody can check."""
    world, rng = World(tmp_path, prompts=1, repeats=3), np.random.default_rng(seed)
    audits, matches = pl.read_parquet(world.audits(2, 0.9)), pl.read_parquet(tmp_path / "matches/matches.parquet")
    one = matches.filter(model="wide", concept="art").select("image_id")
    few, half = rng.random(audits.height) < rng.choice([0.1, 0.5, 1.0]), rng.random(audits.height) < 0.5
    audits = audits.filter((pl.col("annotator") == "r0") | pl.Series(few)).with_columns(
        pool=pl.lit(rng.choice(["us", "us", "simulated"]))
    )
    known = rng.random(audits.height) < rng.choice([0.02, 0.95, 1.0])
    audits = audits.with_columns(
        offered_first=pl.when(pl.Series(known)).then(pl.Series(half[: audits.height])), as_mapped=pl.Series(known)
    )
    gold = filled(AUDITS, [
        {"image_id": f"gold-{number}", "pool": audits["pool"][0], "annotator": "r0", "none_of_these": False,
         "artifact_id": "JP-1", "country": "JP", "continent": "Asia", "gold": True, "known_artifact_id": None,
         "known_country": "JP", "known_continent": "Asia", "drawing": None, "none_means": None, "offered_first": None,
         "as_mapped": None}
        for number in range(rng.integers(8, 12))
    ])  # fmt: skip
    audits = pl.concat([audits, gold], how="diagonal")
    for column in ("artifact_id", "country"):
        stated = marks_of(matches.join(one, on="image_id"), audits, None, "drawn", column)
        assert sorted(stated) == recounted([one], told_apart(audits), column, unknown=False)


@pytest.mark.slow
def test_corrected_diversity_of_few_images(tmp_path: Path) -> None:
    world = World(tmp_path, prompts=12, repeats=2)
    audits = world.audits(1, 0.85)
    answer = world.verified(QvsOptions((*KERNELS[:2], KERNELS[3])), audits=audits, correction=Correction(seed=3))
    assert len(corrected(answer)) == 2 * 3 * 3


@pytest.mark.slow
def test_corrected_qvs_of_images_whose_quality_is_known_in_part(tmp_path: Path) -> None:
    world = World(tmp_path)
    options = QvsOptions((KERNELS[2],))
    answer = world.verified(options, audits=world.audits(3, 0.97), quality=world.quality(0.6))
    products = [about for about in corrected(answer) if "scorer" in about]
    assert len(products) == 2 * 3 * 2
    assert all("quality of a part" in about["marked"] and about["images_left_out"] for about in products)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [["artifact_id", "country"], *([["artifact_id"]] if THOROUGH else [])])
def test_raters_who_know_the_country_or_the_continent_only(tmp_path: Path, levels: list[str]) -> None:
    world = World(tmp_path)
    path = world.audits(1, 0.9)
    unsure = pl.int_range(pl.len()) % 12 == 0
    change_table(
        path, lambda t: t.with_columns(pl.when(unsure).then(None).otherwise(pl.col(x)).alias(x) for x in levels)
    )
    answer = world.verified(QvsOptions(KERNELS), audits=path, correction=Correction(seed=3))
    assert len(corrected(answer)) > 20
    assert any("continent_only" in about for about in corrected(answer)) == ("country" in levels)


@pytest.mark.slow
def test_raters_who_cannot_tell_or_name_a_country_outside_the_space(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = world.audits(1, 0.9)
    place = pl.int_range(pl.len()) % 20
    unsure, abroad = place == 0, place == 7
    said = {"artifact_id": None, "country": "XX", "continent": "Nowhere"}
    change_table(
        path,
        lambda t: t.with_columns(
            *(pl.when(unsure).then(None).when(abroad).then(pl.lit(said[x])).otherwise(x).alias(x) for x in said),
            none_of_these=(pl.col("none_of_these") | unsure) & ~abroad,
            none_means=pl.when(unsure)
            .then(pl.lit("cannot tell"))
            .when("none_of_these")
            .then(pl.lit("no culture shown")),
        ),
    )
    answer = world.verified(QvsOptions(KERNELS[1:3]), audits=path, correction=Correction(seed=3))
    assert len(corrected(answer)) > 6
    assert all("cannot_tell" in about for about in corrected(answer))


@pytest.mark.slow
@pytest.mark.parametrize("raters", [1, 3])
def test_raters_whom_gold_items_hold_and_the_form_draws(tmp_path: Path, raters: int) -> None:
    world = World(tmp_path, repeats=9)
    path = world.audits(raters, 0.95)
    gold = filled(AUDITS, [
        {"image_id": f"gold-{number}", "pool": "us", "annotator": f"r{rater}", "none_of_these": False,
         "artifact_id": "JP-1", "country": "JP", "continent": "Asia", "gold": True, "known_artifact_id": "JP-1",
         "known_country": "JP" if number % 8 else "IN", "known_continent": "Asia", "drawing": None, "none_means": None}
        for number in range(12) for rater in range(raters)
    ])  # fmt: skip
    first = pl.col("image_id").rank("dense") % 2 == 0
    known = {"offered_first": pl.when(~pl.col("gold").fill_null(value=False)).then(first), "as_mapped": first}
    columns = [*AUDITS.columns, *AUDITS.optional]
    change_table(path, lambda table: pl.concat([table, gold], how="diagonal").with_columns(**known).select(columns))
    answer = world.verified(QvsOptions(KERNELS[1:4]), audits=path, correction=Correction(seed=3))
    assert len(corrected(answer)) > 10
    assert not any("one rater" in about["marked"] for about in corrected(answer))
    assert all("anchored answers left out" in about["marked"] for about in corrected(answer))


@pytest.mark.slow
def test_an_audit_that_was_changed_after_the_correction(tmp_path: Path) -> None:
    """The oracles can fail: what the metrics scored of other answers is not what they give."""
    world = World(tmp_path)
    path = world.audits(1, 0.9)
    world.verified(QvsOptions(KERNELS[:2]), audits=path)
    some = ~pl.col("none_of_these")
    change_table(path, lambda t: t.with_columns(country=pl.when(some).then(pl.lit("JP")),
                                                continent=pl.when(some).then(pl.lit("Asia"))))  # fmt: skip
    renew_inputs(tmp_path / "scores")
    with pytest.raises(AssertionError, match="not what the tables give"):
        scored_again(tmp_path / "scores")
