"""The matcher that AHEaD was published with, all-MiniLM-L6-v2 at tau .52: on published descriptors, and a whole run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.torch_places import mend_torchvision
from culturekit.metrics import align, hallucination, normalise_phrase
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.conftest import SHARED
from tests.real.things import MINILM, keep, needs

pytestmark = [
    *needs(MINILM, SHARED / "ahead"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
pytest.importorskip("torch")
mend_torchvision()
pytest.importorskip("sentence_transformers")

TAU = 0.52


def published() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Read what people eating should show in Iran and in Nepal, by dimension."""
    iran = json.loads((SHARED / "ahead/iran_descriptors.json").read_text(encoding="utf-8"))["eating"]["eating"]
    nepal = json.loads((SHARED / "ahead/nepal_tokens.json").read_text(encoding="utf-8"))["eating"]
    plain = {name: [one["token"] for one in tokens] for name, tokens in iran.items()}
    return tuple({name: listed(side[name]) for name in plain if name != "people"} for side in (plain, nepal))  # type: ignore[return-value]


def listed(tokens: list[str]) -> list[str]:
    return list(dict.fromkeys(map(normalise_phrase, tokens)))


def cosines(encoder: Any, left: list[str], right: list[str]) -> NDArray[np.float64]:
    product: NDArray[np.float64] = (
        encoder.encode_texts(left).astype(float) @ encoder.encode_texts(right).astype(float).T
    )
    return product


@pytest.fixture(scope="module")
def encoder() -> Any:
    from culturekit.index.encoder import ENCODERS

    return ENCODERS.make(f"sentence:{MINILM}?device=cpu")


def test_vectors_are_those_of_the_package(encoder: Any) -> None:
    import sentence_transformers

    texts = sorted({token for side in published() for tokens in side.values() for token in tokens})
    own = sentence_transformers.SentenceTransformer(str(MINILM), device="cpu")
    expected = own.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    assert len(texts) > 80
    assert np.abs(encoder.encode_texts(texts) - expected).max() < 1e-5
    assert encoder.too_long(texts) == []
    assert (encoder.identity.dim, encoder.caveat) == (384, "")


def naive(matches: Mapping[str, NDArray[np.float64]]) -> tuple[float, float]:
    """Score as the paper writes it: references that a prediction matches, and predictions that match none."""
    covered = [np.mean([max(reference) >= TAU for reference in table.T]) for table in matches.values()]
    invented = [np.mean([max(prediction) < TAU for prediction in table]) for table in matches.values()]
    return float(np.mean(covered)), float(np.mean(invented))


def alike(table: NDArray[np.float64], *, but_itself: bool = False) -> float:
    """Give the share of pairs that count as the same."""
    pairs = table[~np.eye(len(table), dtype=bool)] if but_itself else table
    return float((pairs >= TAU).mean())


def test_a_neighbours_table_is_told_apart_by_dimension_and_equals_the_loop(encoder: Any) -> None:
    iran, nepal = published()
    same = {name: cosines(encoder, tokens, tokens) for name, tokens in iran.items()}
    other = {name: cosines(encoder, nepal[name], tokens) for name, tokens in iran.items()}
    lengths = {name: len(tokens) for name, tokens in iran.items()}

    def scored(table: Mapping[str, NDArray[np.float64]]) -> tuple[float, float]:
        return align(table, lengths, tau=TAU), hallucination(table, lengths, tau=TAU)

    for table in (same, other):
        assert scored(table) == pytest.approx(naive(table), abs=1e-12)
    assert scored(same) == (1, 0)
    assert 0.1 < scored(other)[0] < 0.9
    rows = [
        [name, str(len(tokens)), f"{alike(same[name], but_itself=True):.0%}", f"{alike(other[name]):.0%}"]
        for name, tokens in iran.items()
    ]
    align_of, hal_of = scored(other)
    keep(
        "minilm",
        f"Published descriptors of eating in Iran at tau .52; those of Nepal in place of what an image shows: "
        f"ALIGN {align_of:.3f}, HAL {hal_of:.3f}",
        [["dimension", "descriptors", "other descriptors of Iran that count as the same", "those of Nepal"], *rows],
    )


SMALL = (
    "ground.countries=[IR, US]", "ground.per_category=1", "images.slots=2", "real.per_prompt=2", "real.keep=1",
    f"encoder=sentence:{MINILM}?device=cpu", "scores.tau=0.52", "people.prompts=12", "people.images=1",
    "people.resamples=99",
)  # fmt: skip


def test_a_whole_run_of_activities_is_matched_by_it_and_verified(tmp_path: Path) -> None:
    stated = [word for setting in SMALL for word in ("--set", setting)]
    done = culturekit("run", "cultivate", "--workdir", str(tmp_path / "run"), *stated)
    assert done.returncode == 0, done.stderr
    tables = [pl.read_parquet(path) for path in (tmp_path / "run").glob("*/scores.parquet")]
    rows = [row for table in tables for row in table.filter(metric="align").to_dicts()]
    assert {json.loads(row["params"]).get("tau", TAU) for row in rows} == {TAU}
    assert [str(finding) for finding in verify_run(tmp_path / "run").findings if finding.severity == "broken"] == []
