"""Small CSpaces and simulated models that tests of generation and of the index start from."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.generation.backend import BACKENDS, ImageBackend, ImageReply, ImageRequest, Picture

COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")


def space(*rows: tuple[str, str, str, float | None]) -> pl.DataFrame:
    """A CSpace of (artifact, concept, country, popularity)."""
    full: list[dict[str, object]] = [
        {
            "artifact_id": artifact_id, "qid": artifact_id, "name": artifact_id, "concept": concept, "country": country,
            "country_name": country, "continent": "x", "source": "wikidata", "popularity": popularity, "path": [],
        }
        for artifact_id, concept, country, popularity in rows
    ]  # fmt: skip
    return pl.DataFrame(full, schema=CSPACE.schema)


def wide_space(artifacts: int) -> pl.DataFrame:
    """A CSpace of one concept, its artifacts dealt out to eight countries; the first are the most popular."""
    rows = [(f"Q{7 * k}", "cuisine", COUNTRIES[k % len(COUNTRIES)], 1000.0 / (k + 1)) for k in range(artifacts)]
    return space(*rows)


def model(folder: Path, cspace: pl.DataFrame, options: str = "") -> ImageBackend:
    """A simulated model over a CSpace; options as in a SPEC."""
    return BACKENDS.make(f"simulated?{options}" if options else "simulated", cspace=write_table(folder, CSPACE, cspace))


def asked(
    seed: int, *, concept: str | None = "cuisine", country: str | None = None, artifact_id: str | None = None
) -> ImageRequest:
    """A request of which only what matters to a simulated model is said."""
    return ImageRequest("p", "a prompt", None, seed, 0, 0, concept, country, artifact_id)


def portraits(backend: ImageBackend, artifacts: Sequence[str], *, first_seed: int) -> list[Picture]:
    """One picture of each artifact, every one from a seed of its own."""
    requests = [asked(first_seed + number, artifact_id=artifact) for number, artifact in enumerate(artifacts)]
    return pictures(backend.generate(requests))


def pictures(replies: Sequence[ImageReply]) -> list[Picture]:
    """The replies, all of which are pictures."""
    drawn = [reply for reply in replies if isinstance(reply, Picture)]
    assert len(drawn) == len(replies)
    return drawn
