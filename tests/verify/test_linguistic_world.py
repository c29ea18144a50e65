"""A run of the kind `linguistic`: an untouched one is verified, whatever is changed in it is found."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.pipeline.shipped_recipes import run_small
from tests.verify.tampering import Change, broken, check_found, first, without_first

pytestmark = pytest.mark.slow

TINY = (
    "prompts.nouns=2", "images.slots=2", "people.persons=60", "people.places=60", "detectors=[dall-eval]",
    "people.raters=2", "people.simulated={accuracy: 0.9, scatter: 0.4, careless: 0.2}",
)  # fmt: skip
"""Small, and of people who err, some of whom do not read along."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small("linguistic", TINY, tmp_path_factory.mktemp("linguistic"))[0]


def test_what_was_not_touched_is_verified(finished: Path) -> None:
    answer = verify_run(finished)
    assert broken(answer) == []
    assert answer.exit_code == 0
    assert "not verifiable" not in {verdict.verdict for verdict in answer.verdicts}
    assert answer.checked["prompts written anew"] == 48 + 14 + 42
    assert answer.checked["images drawn anew"] == 2 * 3 * 60


def corrected(metric: str, **limits: float) -> Change:
    """Set a limit of the corrected scores of a metric, as near to the value as it may be."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        own = (
            (pl.col("metric") == metric) & pl.col("params").str.contains('"labels":"corrected"') & (pl.col("value") > 0)
        )
        (column, limit), *_ = limits.items()
        return table.with_columns(pl.when(own).then(pl.lit(limit)).otherwise(column).alias(column))

    return change


GIVE, MEAN = "is not what the tables give", "is not the mean"
TAMPERED: dict[str, tuple[str, Change, str]] = {
    "the text of a prompt": ("prompts-neutral/prompts", first("text", "a bad home"), "too many or too few"),
    "the group of a prompt": ("prompts-specific/prompts", first("group", "Nobody"), "too many or too few"),
    "where a prompt is from": (
        "prompts-specific/prompts", first("template_id", "not printed", text="^a plaza in America$"), "from elsewhere",
    ),
    "a prompt left out": ("prompts-dialects/prompts", without_first, "too many or too few"),
    "the word of a pair": ("prompts-dialects/dialect_pairs", first("other", "slang"), "too many or too few"),
    "a pair that fell": ("prompts-dialects/dialect_pairs", first("outcome", "not grammatical"), "has no reason"),
    "a pair that repeats": ("prompts-dialects/dialect_pairs", first("outcome", "repeated"), "is not 'repeated'"),
    "a prompt of all": ("prompts/prompts", first("text", "a man"), "is not what its parts hold"),
    "a caption": ("question-captions/captions", first("text", "a nice environment"), "asks something else"),
    "a picture that was drawn": ("drawn-persons/audit_sample", first("image_id", "nobody"), "another sample"),
    "the chance of a picture": ("drawn-places/audit_sample", first("chance", 0.9), "another sample"),
    "a picture left out": ("drawn-persons/audit_sample", without_first, "another sample"),
    "what is true": ("truth/annotations", first("choice", "perhaps", criterion="correct"), "another answer"),
    "a true tone": ("truth/annotations", first("value", 11.0, criterion="monk_tone"), "another answer"),
    "a truth left out": ("truth/annotations", without_first, "another answer"),
    "the gap of dialects": ("dialects/scores", first("value", 0.01, metric="dialect_gap"), GIVE),
    "the score of a dialect": ("dialects/scores", first("value", 0.01, metric="dialect_score"), MEAN),
    "a true gap": ("true-dialects/scores", first("value", 0.01, metric="dialect_gap"), GIVE),
    "a picture's score": ("dialects/values", first("value", 0.99), GIVE),
    "the share of a tone": ("tones-dall-eval/scores", first("value", 0.55, metric="tone_share"), GIVE),
    "the spread of tones": ("tones-dall-eval/scores", first("value", 0.2, metric="tone_std"), GIVE),
    "a corrected share": (
        "tones-dall-eval/scores",
        lambda t: t.with_columns(value=pl.when(pl.col("params").str.contains("corrected")).then(pl.col("value") * 0.9)
                                 .otherwise("value")),
        GIVE,
    ),
    "a limit of a corrected spread": ("tones-dall-eval/scores", corrected("tone_std", ci_high=0.2), "ci_high is not"),
    "a limit of a corrected share": ("tones-dall-eval/scores", corrected("tone_share", ci_low=0.0), "ci_low is not"),
    "a limit of the rule's spread": ("tones-dall-eval/scores", first("ci_low", 0.001, metric="tone_mad"), "ci_low is"),
    "a limit of a gap": ("dialects/scores", first("ci_high", 0.9, metric="dialect_gap"), "ci_high is not"),
    "a limit of the map's spread": ("neutral-open/scores", first("ci_low", 0.0, metric="std$"), "ci_low is not"),
    "a tone that the rule found": ("tones-dall-eval/values", first("value", 9.0), GIVE),
    "the true spread": ("true-tones/scores", first("value", 0.2, metric="tone_mad"), GIVE),
    "the heat map": ("neutral-open/scores", first("value", 0.5, metric="neutral_similarity"), MEAN),
    "its spread": ("neutral-open/scores", first("value", 0.5, metric="neutral_std$"), GIVE),
    "the spread of its means": ("neutral-open/scores", first("value", 0.5, metric="neutral_mad_of_means"), GIVE),
    "a question's share": ("questions-open/scores", first("value", 0.5, metric="question_share"), MEAN),
    "a question's deviation": ("questions-open/scores", first("value", 0.5, metric="question_sd"), GIVE),
    "a corrected share of modern places": ("judged-modern/scores", first("value", 0.123), ""),
    "a rating": ("ratings/scores", first("value", 1.1, metric="rating_mean"), ""),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TAMPERED))
def test_what_was_changed_is_found(finished: Path, what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    check_found(finished, *TAMPERED[what])
