"""Which candidates become real images of a prompt, and why the others do not."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.judging.image_judge import choose
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.schemas import DROPS, IMAGES, PROMPTS, QUALITY
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from tests.builders.judging.test_image_judge import png
from tests.builders.put import do
from tests.builders.spaces import rows_of

ENGLISH = {"text": "A photo of a dance in Iran.", "benchmark": "cultivate", "kind": "activity", "country": "IR",
           "language": "en", "template_id": "t", "prompt_id": "p", "pair_id": "one"}  # fmt: skip
PROMPT_ROWS = (ENGLISH, {**ENGLISH, "prompt_id": "p-fa", "language": "fa", "text": "..."})


def reads(folder: Path, candidates: dict[str, tuple[str, float | None]]) -> tuple[Path, Path, Path]:
    """Candidates by id: their prompt and their score; without a score they have none."""
    rows, scores = [], []
    (folder / "images").mkdir()
    for number, (image, (prompt, score)) in enumerate(candidates.items()):
        content = png(f"rgb({number}, {number}, 9)")
        (folder / f"images/{image}.png").write_bytes(content)
        rows.append({"image_id": image, "path": f"{image}.png", "prompt_id": prompt, "model": "web", "rewriter": "off",
                     "slot": number, "repeat": 0, "provider_params": "{}", "sha256": digest_bytes(content),
                     "width": 4, "height": 3, "status": "ok"})  # fmt: skip
        if score is not None:
            scores.append({"image_id": image, "scorer": "clipscore", "value": score})
    return (
        write_table(folder / "images", IMAGES, rows_of(IMAGES, *rows)),
        write_table(folder, PROMPTS, rows_of(PROMPTS, *PROMPT_ROWS).with_columns(pair_id=pl.lit("one"))),
        write_table(folder, QUALITY, rows_of(QUALITY, *scores)),
    )


def test_the_best_of_both_languages_are_kept_for_the_english_prompt(work: Work, tmp_path: Path) -> None:
    given = reads(tmp_path, {"a": ("p", 0.3), "b": ("p", 0.9), "c": ("p-fa", 0.8), "d": ("p-fa", 0.1), "e": ("p", 0.95),
                             "f": ("p-fa", None), "g": ("other", 0.9)})  # fmt: skip
    outcome = do(choose, work, *given, per_language=2, at_least=0.2, keep=2)
    kept = read_table(work.out / "images.parquet", IMAGES).sort("slot")
    assert kept.select("image_id", "model", "prompt_id", "slot").rows() == [
        ("b", "real", "p", 0),
        ("c", "real", "p", 1),
    ]
    assert dict(read_table(work.out / "drops.parquet", DROPS).select("key", "reason").iter_rows()) == {
        "a": "not among the best 2", "d": "score below 0.2", "e": "beyond the first 2 of a language", "f": "no score",
        "g": "no known prompt",
    }  # fmt: skip
    assert outcome.drops["no score"] == 1
    for path, sha256 in kept.select("path", "sha256").iter_rows():
        assert digest_bytes((work.out / path).read_bytes()) == sha256


def test_the_same_picture_is_kept_once(work: Work, tmp_path: Path) -> None:
    given = reads(tmp_path, {"a": ("p", 0.3), "b": ("p", 0.9)})
    table = read_table(given[0], IMAGES)
    same = table.with_columns(path=pl.lit("a.png"), sha256=pl.lit(table["sha256"][0]))
    write_table(given[0].parent, IMAGES, same)
    outcome = do(choose, work, *given)
    assert read_table(work.out / "images.parquet", IMAGES)["image_id"].to_list() == ["b"]
    assert outcome.drops == {"the same picture as a better one": 1}


def test_where_nothing_is_good_enough_that_is_said(work: Work, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no candidate is kept") as error:
        do(choose, work, *reads(tmp_path, {"a": ("p", 0.1)}), at_least=0.2)
    assert "1 score below 0.2" in str(error.value)


def test_a_picture_that_was_changed_is_not_copied(work: Work, tmp_path: Path) -> None:
    given = reads(tmp_path, {"a": ("p", 0.3)})
    (given[0].parent / "a.png").write_bytes(png("black", (9, 9)))
    with pytest.raises(UsageError, match="cannot be copied"):
        do(choose, work, *given)
