"""What was tampered with is found: at once where hashes no longer fit, by working out again where they were made to."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.verify.verify_run import Verification, verify_run
from tests.verify.forging import change_table, read_json, reseal, reseal_all, write_json

SEED = 20261121


def pick(frame: pl.DataFrame, **where: str) -> int:
    """Draw a row that meets conditions, always the same one."""
    rows = frame.with_row_index("row")
    for column, value in where.items():
        rows = rows.filter(pl.col(column) == value)
    return int(np.random.default_rng(SEED).choice(rows["row"].to_numpy()))


def at_row(number: int, column: str, change: pl.Expr) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) == number).then(change).otherwise(pl.col(column)).alias(column)


def in_scores(column: str, change: pl.Expr, metric: str = "vs") -> Callable[[Path], None]:
    def tamper(root: Path) -> None:
        path = root / "scores/scores.parquet"
        change_table(path, lambda t: t.with_columns(at_row(pick(t, metric=metric, model="broad"), column, change)))

    return tamper


def drop_a_score(root: Path) -> None:
    path = root / "scores/scores.parquet"
    change_table(path, lambda t: t.filter(pl.int_range(pl.len()) != pick(t, metric="qvs", model="narrow")))


def in_values(root: Path) -> None:
    path = root / "scores/values.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t, metric="vs"), "value", pl.col("value") * 0.9)))


def in_shares(column: str, change: pl.Expr) -> Callable[[Path], None]:
    def tamper(root: Path) -> None:
        path = root / "shown/distributions.parquet"
        change_table(path, lambda t: t.with_columns(at_row(pick(t, level="country"), column, change)))

    return tamper


def swap_matches(root: Path) -> None:
    columns = ["artifact_id", "artifact", "country", "countries", "continent", "score", "margin", "country_margin"]

    def swap(t: pl.DataFrame) -> pl.DataFrame:
        rows = t.with_row_index("at").filter(pl.col("rank") == 1).unique("artifact_id", maintain_order=True)["at"]
        one, other = int(rows[0]), int(rows[-1])
        order = list(range(t.height))
        order[one], order[other] = other, one
        return t.with_columns(t.select(columns)[order])

    change_table(root / "matches-broad/matches.parquet", swap)


def relabel_a_match(root: Path) -> None:
    path = root / "matches-broad/matches.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t), "country", pl.lit("XX"))))


def abstain(root: Path) -> None:
    path = root / "matches-broad/matches.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t), "abstained", ~pl.col("abstained"))))


def edit_vectors(root: Path) -> None:
    path = root / "matches-broad/vectors.npy"
    vectors = np.load(path)
    vectors[[2, 9]] = vectors[[9, 2]]
    np.save(path, vectors)


def edit_index(root: Path) -> None:
    path = root / "index/vectors.npy"
    vectors = np.load(path)
    vectors = vectors[::-1].copy()
    np.save(path, vectors)


def replace_picture(root: Path) -> None:
    first, second, *_ = sorted((root / "images-broad/files").rglob("*.png"))
    shutil.copyfile(second, first)


def add_picture(root: Path) -> None:
    first = min((root / "images-broad/files").rglob("*.png"))
    shutil.copyfile(first, first.with_name("zzz.png"))


def path_outside(root: Path) -> None:
    change_table(
        root / "images-broad/images.parquet",
        lambda t: t.with_columns(at_row(0, "path", pl.lit("../images-narrow/" + t["path"][0]))),
    )


def edit_prompts(root: Path) -> None:
    change_table(
        root / "prompts/prompts.parquet",
        lambda t: t.with_columns(
            text=pl.when(pl.col("kind") == "underspecified").then(pl.col("text") + " at night").otherwise("text")
        ),
    )


def edit_quality(root: Path) -> None:
    path = root / "quality-broad/quality.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t), "value", pl.col("value") * 0.5)))


def quality_out_of_range(root: Path) -> None:
    path = root / "quality-broad/quality.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t), "value", pl.lit(1.7))))


def quality_of_fewer(root: Path) -> None:
    change_table(root / "quality-broad/quality.parquet", lambda t: t.head(t.height - 1))


def edit_truth(root: Path) -> None:
    path = root / "truth-broad/matches.parquet"
    change_table(path, lambda t: t.with_columns(at_row(pick(t), "artifact_id", pl.lit("Q1"))))


def edit_report(root: Path) -> None:
    path = root / "report/report.html"
    page = path.read_text(encoding="utf-8")
    cell = re.search(r'title="n = \d+, row \d+ of scores.parquet">(0\.\d{3})<', page)
    assert cell
    wrong = f"{float(cell[1]) + 0.1:.3f}"
    path.write_text(page[: cell.start(1)] + wrong + page[cell.end(1) :], encoding="utf-8")


def edit_report_row(root: Path) -> None:
    path = root / "report/report.html"
    page = path.read_text(encoding="utf-8")
    wrong = re.sub(r'(<tr data-model=")broad(">.*?</tr>)', r"\1narrow\2", page, flags=re.DOTALL)
    assert wrong != page
    path.write_text(wrong, encoding="utf-8")


def add_file(root: Path) -> None:
    (root / "scores/notes.txt").write_text("nothing to see")


def remove_file(root: Path) -> None:
    (root / "matches-narrow/matches.parquet").unlink()


def link_outside(root: Path) -> None:
    outside = root.parent / "elsewhere.parquet"
    (root / "scores/values.parquet").rename(outside)
    (root / "scores/values.parquet").symlink_to(outside)


def edit_options(root: Path) -> None:
    path = root / "scores/manifest.json"
    manifest = read_json(path)
    manifest["options"]["confidence"] = 0.9
    write_json(path, manifest)


def edit_counts(root: Path) -> None:
    path = root / "matches-broad/manifest.json"
    manifest = read_json(path)
    manifest["counts"]["matches"] += 5
    write_json(path, manifest)


def edit_graph(root: Path) -> None:
    path = root / "graph/nodes.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def edit_recipe(root: Path) -> None:
    path = root / "recipe.json"
    recipe = read_json(path)
    recipe["seed"] += 1
    write_json(path, recipe)


def cut_manifest(root: Path) -> None:
    path = root / "index/manifest.json"
    path.write_bytes(path.read_bytes()[:-40])


@dataclass(frozen=True)
class Tampering:
    """What is changed, how far hashes are made to fit again, and how it is found."""

    change: Callable[[Path], None]
    seal: str
    said: str


def seal_scores(root: Path) -> None:
    reseal(root / "scores")


SEALS: dict[str, Callable[[Path], None]] = {"none": lambda root: None, "own": seal_scores, "all": reseal_all}

VALUE = in_scores("value", pl.col("value") + 0.001)
TAMPERINGS = {
    "a score changed": Tampering(VALUE, "none", "scores/scores.parquet: is not what its stage wrote"),
    "a score changed and its own manifest": Tampering(VALUE, "own", "report <- scores: report was not made from"),
    "a score changed and all manifests": Tampering(VALUE, "all", "value is not what the tables give"),
    "an interval changed": Tampering(
        in_scores("ci_low", pl.col("ci_low") + 0.001), "all", "ci_low is not what the tables give"
    ),
    "an interval removed": Tampering(
        in_scores("ci_high", pl.lit(None, pl.Float64)), "all", "ci_high is not what the tables give"
    ),
    "a share changed": Tampering(in_shares("share", pl.col("share") / 2), "all", "the count of .* is wrong"),
    "a share given limits": Tampering(in_shares("ci_low", pl.lit(0.01)), "all", "the count of .* is wrong"),
    "n changed": Tampering(in_scores("n", pl.col("n") + 8), "all", "n is not what the tables give"),
    "a quality score changed": Tampering(
        in_scores("value", pl.col("value") + 0.001, "quality"), "all", r"\(quality, broad.* value is not"
    ),
    "the kernel of a score renamed": Tampering(
        in_scores("params", pl.col("params").str.replace('"weights":.[^]]*.', '"weights":[0.2,0.2,0.6]')),
        "all",
        "a score is missing",
    ),
    "only the name of a kernel changed": Tampering(
        in_scores("params", pl.col("params").str.replace('"kernel":"[a-z]+"', '"kernel":"uniformed"')),
        "all",
        "params.kernel is not what the tables give",
    ),
    "the confidence of a score changed": Tampering(
        in_scores("params", pl.col("params").str.replace('"confidence":0.95', '"confidence":0.99')),
        "all",
        "confidence is not that of the stage",
    ),
    "a score of something else": Tampering(in_scores("metric", pl.lit("fame")), "all", "is no score of this stage"),
    "a score taken out": Tampering(drop_a_score, "all", "a score is missing"),
    "a value behind a score changed": Tampering(in_values, "all", "value in values.parquet for"),
    "two matches swapped": Tampering(swap_matches, "all", "is not what the vectors give"),
    "the country of a match changed": Tampering(relabel_a_match, "all", "country is not the artifact's"),
    "a match abstains": Tampering(abstain, "all", "abstains, or not, against its margin"),
    "vectors of images swapped": Tampering(edit_vectors, "all", "is not what the vectors give"),
    "vectors of the index reversed": Tampering(edit_index, "all", "is not what the vectors give"),
    "a picture replaced": Tampering(replace_picture, "none", "images-broad/files: is not what its stage wrote"),
    "a picture replaced and all manifests": Tampering(replace_picture, "all", "the picture is not the one"),
    "a picture added": Tampering(add_picture, "all", "the picture is in no row of the table"),
    "a picture of another folder": Tampering(path_outside, "all", "the path leads out of the folder"),
    "prompts edited": Tampering(edit_prompts, "all", "the prompt sent is not the prompt's"),
    "quality altered": Tampering(edit_quality, "all", r"\(quality, broad.* value is not"),
    "quality out of range": Tampering(quality_out_of_range, "all", "is out of range; expected 0.0 to 1.0"),
    "quality of fewer images": Tampering(quality_of_fewer, "all", "other images have a quality than were made"),
    "the truth edited": Tampering(edit_truth, "all", "artifact_id is not what was drawn"),
    "the report edited": Tampering(edit_report, "none", "report/report.html: is not what its stage wrote"),
    "the report edited and its manifest": Tampering(edit_report, "all", "the value shown is not that of the scores"),
    "a row of the report moved": Tampering(edit_report_row, "all", "the row is of another model"),
    "a file added": Tampering(add_file, "none", "scores/notes.txt: is in no manifest"),
    "a file removed": Tampering(remove_file, "none", "matches-narrow/matches.parquet: is gone"),
    "a link out of the run": Tampering(link_outside, "none", "a link leads out"),
    "an option changed": Tampering(edit_options, "none", "the key is not that of its inputs, options and seeds"),
    "a count changed": Tampering(edit_counts, "none", "the manifest counts other rows"),
    "a bit of the graph": Tampering(edit_graph, "none", "graph/nodes.npy: is not what its stage wrote"),
    "the recipe edited": Tampering(edit_recipe, "none", "the seed of broad is not what the run was made with"),
    "a manifest cut": Tampering(cut_manifest, "none", "index/manifest.json: could not be read"),
}


def broken(answer: Verification) -> str:
    return "\n".join(str(finding) for finding in answer.findings if finding.severity == "broken")


def test_an_untouched_run_is_verified(small_run: Path) -> None:
    answer = verify_run(small_run)
    assert answer.findings == ()
    assert answer.exit_code == 0
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
    tables = [pl.read_parquet(small_run / f"{stage}/scores.parquet") for stage in ("scores", "comparison")]
    assert len(answer.verdicts) == sum(table.height for table in tables)


def test_a_run_whose_manifests_were_only_written_again_is_verified(run_copy: Path) -> None:
    """The forger's tools alone change nothing: what tamperings find is the tampering."""
    reseal_all(run_copy)
    assert broken(verify_run(run_copy)) == ""


IN_EVERY_RUN = 3
"""One tampering in so many; the others are slow tests."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if number % IN_EVERY_RUN else [])
        for number, name in enumerate(TAMPERINGS)
    ],
)
def test_a_tampering_is_found(name: str, run_copy: Path) -> None:
    tampering = TAMPERINGS[name]
    tampering.change(run_copy)
    SEALS[tampering.seal](run_copy)
    answer = verify_run(run_copy)
    assert answer.exit_code == 4
    assert re.search(tampering.said, broken(answer)), broken(answer)
