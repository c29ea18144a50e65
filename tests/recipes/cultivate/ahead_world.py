"""A small world of activities: prompts of three countries, two models and real images, descriptors and vectors."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DESCRIPTORS, IMAGES, JUDGMENTS, PROMPTS
from culturekit.core.tables import write_table
from culturekit.index.embedding.embedding import save_vectors
from culturekit.recipes.cultivate.scores import AheadInput, PhraseVectors

DIMENSIONS = ("attire", "background", "objects")
COUNTRIES = {"p0": "FR", "p1": "FR", "p2": "IN", "p3": "NG", "p4": "NG"}
PHRASES = [f"thing {number}" for number in range(40)]
STEREOTYPES = ("beret", "baguette")


@dataclass(frozen=True)
class World:
    """The tables as lists of rows, so that a test can change some."""

    images: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    descriptors: list[dict[str, Any]]
    extracted: list[dict[str, Any]]
    stereotypes: list[dict[str, Any]]
    vectors: np.ndarray[Any, np.dtype[np.float32]]
    ids: list[str] = field(default_factory=lambda: list(PHRASES))

    def tables(self, *, stereotypes: bool = True) -> AheadInput:
        """Make tables that conform."""
        return AheadInput(
            images=pl.DataFrame(self.images, schema=IMAGES.schema),
            prompts=pl.DataFrame(self.prompts, schema=PROMPTS.schema),
            descriptors=pl.DataFrame(self.descriptors, schema=DESCRIPTORS.schema),
            extracted=pl.DataFrame(self.extracted, schema=JUDGMENTS.schema), vectors=self.vectors, ids=self.ids,
            stereotypes=pl.DataFrame(self.stereotypes, schema=JUDGMENTS.schema) if stereotypes else None,
        )  # fmt: skip

    def stored(self, folder: Path, *, stereotypes: bool = True) -> dict[str, Any]:
        """Write the tables, of real images and of others apart, and the vectors; give them as the stage takes them."""
        tables = self.tables(stereotypes=stereotypes)
        judgments = [tables.extracted] if tables.stereotypes is None else [tables.extracted, tables.stereotypes]
        real = pl.col("image_id").str.starts_with("real")
        images, judged = [], []
        for name, chosen in (("made", ~real), ("real", real)):
            (folder / name).mkdir(parents=True)
            images.append(write_table(folder / name, IMAGES, tables.images.filter(chosen)))
            judged.append(write_table(folder / name, JUDGMENTS, pl.concat(judgments).filter(chosen)))
        (folder / "phrases").mkdir()
        save_vectors(folder / "phrases", np.asarray(tables.vectors), tables.ids)
        return {
            "images": Numbered(images),
            "prompts": write_table(folder, PROMPTS, tables.prompts),
            "descriptors": write_table(folder, DESCRIPTORS, tables.descriptors),
            "extracted": Numbered(judged),
            "phrases": PhraseVectors(folder / "phrases"),
            **({"stereotypes": Numbered(judged)} if stereotypes else {}),
        }

    def shuffled(self, seed: int) -> "World":
        """Bring the rows of all tables into another order."""
        rng = np.random.default_rng(seed)
        tables = {
            name: [rows[i] for i in rng.permutation(len(rows))]
            for name in ("images", "prompts", "descriptors", "extracted", "stereotypes")
            for rows in [getattr(self, name)]
        }
        order = rng.permutation(len(self.ids))
        return replace(self, **tables, vectors=self.vectors[order], ids=[self.ids[i] for i in order])


def image_row(image_id: str, *, model: str, prompt_id: str | None, repeat: int, status: str = "ok") -> dict[str, Any]:
    return {
        "image_id": image_id, "path": "", "prompt_id": prompt_id, "model": model, "repeat": repeat, "slot": 0,
        "rewriter": "off", "provider_params": "{}", "sha256": "", "width": 1, "height": 1, "status": status,
    }  # fmt: skip


def judgment_row(image_id: str, item: str, *, task: str, judge: str = "vlm", **other: Any) -> dict[str, Any]:
    return {"image_id": image_id, "judge": judge, "task": task, "item": item, "raw": "", "outcome": "ok", **other}


def world(*, seed: int = 0, repeats: int = 3, countries: dict[str, str | None] | None = None) -> World:
    """Draw a world; some images say nothing in some dimension."""
    rng = np.random.default_rng(seed)
    places = COUNTRIES if countries is None else countries
    prompts = [
        {
            "prompt_id": prompt, "text": prompt, "benchmark": "cultivate", "kind": "activity", "country": country,
            "language": "en", "template_id": "t",
        }
        for prompt, country in places.items()
    ]  # fmt: skip
    descriptors = [
        {
            "prompt_id": prompt, "dimension": dimension, "token": token, "style": "neutral", "necessity": "optional",
            "proposers": ["a"],
        }
        for prompt in places
        for dimension in (*DIMENSIONS, "people")
        for token in rng.choice(PHRASES, int(rng.integers(1, 6)), replace=False)
    ]  # fmt: skip
    images, extracted, stereotypes = [], [], []
    for model in ("ann", "bob", "real"):
        for prompt in places:
            for repeat in range(repeats):
                name = f"{model}/{prompt}/{repeat}"
                images.append(image_row(name, model=model, prompt_id=prompt, repeat=repeat))
                for dimension in DIMENSIONS:
                    tokens = rng.choice(PHRASES, int(rng.integers(0, 5)), replace=False)
                    extracted += [
                        judgment_row(name, str(token), task="extract", dimension=dimension) for token in tokens
                    ] or [judgment_row(name, "", task="extract", dimension=dimension)]
                stereotypes += [
                    judgment_row(name, token, task="stereotype", judge="vqa", value=float(rng.random()))
                    for token in STEREOTYPES
                ]
    vectors = rng.normal(size=(len(PHRASES), 3)).astype(np.float32)
    return World(images, prompts, descriptors, extracted, stereotypes, vectors)
