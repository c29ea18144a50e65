"""A tiny model of open_clip, trained here on rendered artifacts and their names, that maps pictures by text alone.

The folder it writes is one that `open_clip:FOLDER` takes: an encoder of pictures and texts that has learned what each
name looks like, and nothing else. Held-out pictures are then compared with the names only, as `culturekit index build`
without `--references` does; with the names dealt out anew they must be found no more often than by chance.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.core.torch_places import mend_torchvision
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Subject, draw
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder

__all__ = ["TEMPLATES", "Figures", "Setting", "held_out", "trained", "tried", "world"]

SIDE = 64
TEMPLATES = ("{}", "a picture of {}", "a photo of {}", "{}, as it is made there", "an image showing {}")
COUNTRIES = {
    "BR": ("Brazil", "South America"), "FR": ("France", "Europe"), "IN": ("India", "Asia"), "IT": ("Italy", "Europe"),
    "JP": ("Japan", "Asia"), "NG": ("Nigeria", "Africa"), "TR": ("Türkiye", "Asia"), "US": ("United States",
    "North America"),
}  # fmt: skip
SYLLABLES = ("ba", "do", "fen", "gi", "ka", "lu", "mo", "nar", "pe", "ri", "so", "tal", "u", "ve", "zin")


@dataclass(frozen=True, slots=True)
class Setting:
    """How much is learned, and with what."""

    artifacts: int = 100
    steps: int = 300
    batch: int = 100
    width: int = 128
    layers: int = 4
    text_width: int = 64
    text_layers: int = 2
    rate: float = 1e-3
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """How many of the pictures were mapped right, by their names, and with the names dealt out anew."""

    pictures: int
    right: int
    among_five: int
    right_when_shuffled: int


def world(artifacts: int) -> pl.DataFrame:
    """Invent a cultural space: every artifact has a name of two words that means nothing, and one country."""
    rng = np.random.default_rng(7)
    names: list[str] = []
    while len(names) < artifacts:
        name = " ".join("".join(rng.choice(SYLLABLES, size=rng.integers(2, 4))) for _ in range(2)).capitalize()
        if name not in names:
            names.append(name)
    codes = sorted(COUNTRIES)
    rows = [
        {
            "artifact_id": f"Q{9_000_000 + place}", "qid": f"Q{9_000_000 + place}", "name": name, "concept": "cuisine",
            "country": codes[place % len(codes)], "country_name": COUNTRIES[codes[place % len(codes)]][0],
            "continent": COUNTRIES[codes[place % len(codes)]][1], "source": "wikidata", "popularity": 1.0, "path": [],
        }
        for place, name in enumerate(names)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=CSPACE.schema)


def pictures_of(space: pl.DataFrame, places: Sequence[int], rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Draw a picture of each artifact, in a pose, light and place of its own."""
    subjects = [Subject(space["artifact_id"][place], space["country"][place]) for place in places]
    return draw(subjects, rng.random((len(places), DRAWING_NUMBERS)), size=SIDE)


def held_out(space: pl.DataFrame, each: int) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64]]:
    """Draw pictures that training never saw, and say which artifact each shows."""
    places = np.repeat(np.arange(space.height), each)
    return pictures_of(space, places.tolist(), np.random.default_rng([1, space.height])), places


def settings_of(setting: Setting) -> dict[str, Any]:
    """Write down the model as open_clip's own configuration."""
    return {
        "embed_dim": setting.text_width,
        "vision_cfg": {"image_size": SIDE, "layers": setting.layers, "width": setting.width, "head_width": 32,
                       "patch_size": 8},
        "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": setting.text_width, "heads": 2,
                     "layers": setting.text_layers},
    }  # fmt: skip


def batches(
    space: pl.DataFrame, setting: Setting, rng: np.random.Generator
) -> Iterator[tuple[list[NDArray[np.uint8]], list[str]]]:
    """Yield pictures and what they are called; no artifact stands twice in a batch."""
    for _ in range(setting.steps):
        places = rng.permutation(space.height)[: setting.batch].tolist()
        templates = rng.choice(TEMPLATES, size=len(places))
        texts = [template.format(space["name"][place]) for template, place in zip(templates, places, strict=True)]
        yield pictures_of(space, places, rng), texts


def trained(space: pl.DataFrame, folder: Path, setting: Setting) -> float:
    """Train a model and save it as a folder of open_clip; give the last loss."""
    mend_torchvision()
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(setting.seed)
    settings = settings_of(setting)
    model = open_clip.CLIP(**json.loads(json.dumps(settings))).train()
    tokens = open_clip.SimpleTokenizer(context_length=settings["text_cfg"]["context_length"])
    mean, std = (torch.tensor(numbers).view(1, 3, 1, 1) for numbers in ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)))
    steps = setting.steps
    optimizer = torch.optim.AdamW(model.parameters(), lr=setting.rate, weight_decay=0.05, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 0.5 * (1 + math.cos(math.pi * step / steps)) + 0.01)
    )
    last = math.nan
    for pictures, texts in batches(space, setting, np.random.default_rng(setting.seed)):
        given = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float().div(255).sub(mean).div(std)
        seen, read, scale = model(given, tokens(texts))
        logits = scale * seen @ read.T
        own = torch.arange(len(texts))
        loss = (torch.nn.functional.cross_entropy(logits, own) + torch.nn.functional.cross_entropy(logits.T, own)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        last = float(loss.detach())
    folder.mkdir(parents=True, exist_ok=True)
    preprocessing = {"mean": [0.5] * 3, "std": [0.25] * 3, "interpolation": "bicubic", "resize_mode": "shortest"}
    config = {"model_cfg": settings, "preprocess_cfg": {"size": SIDE, "mode": "RGB", **preprocessing}}
    (folder / "open_clip_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()},
              folder / "open_clip_model.safetensors")  # fmt: skip
    return last


def tried(folder: Path, space: pl.DataFrame, *, each: int) -> Figures:
    """Map held-out pictures to the artifact whose name lies nearest, through culturekit's own encoder."""
    encoder = ENCODERS.make(f"open_clip:{folder}?device=cpu")
    if not isinstance(encoder, ImageEncoder) or not isinstance(encoder, TextEncoder):
        raise TypeError("an encoder of pictures and texts")
    pictures, truth = held_out(space, each)
    names = space["name"].to_list()
    ensembles = [encoder.encode_texts([template.format(name) for name in names]) for template in TEMPLATES[:3]]
    texts = np.sum(ensembles, axis=0)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    scores = encoder.encode_images(pictures) @ texts.T
    order = np.argsort(-scores, axis=1)
    dealt = np.random.default_rng(3).permutation(len(names))
    return Figures(
        pictures=len(pictures),
        right=int((order[:, 0] == truth).sum()),
        among_five=int((order[:, :5] == truth[:, np.newaxis]).any(axis=1).sum()),
        right_when_shuffled=int((dealt[order[:, 0]] == truth).sum()),
    )


def share(count: int, pictures: int) -> str:
    """Write a share with its Wilson interval of 95 %."""
    z, part = 1.959964, count / pictures
    middle = (part + z * z / (2 * pictures)) / (1 + z * z / pictures)
    half = z * math.sqrt(part * (1 - part) / pictures + z * z / (4 * pictures**2)) / (1 + z * z / pictures)
    return f"{100 * part:.1f} % ({100 * max(0.0, middle - half):.1f} to {100 * min(1.0, middle + half):.1f})"


def main() -> None:
    """Train, try, and record."""
    from recording import record

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tiny-clip"), help="Folder for the model and its CSpace.")
    parser.add_argument("--artifacts", type=int, default=Setting().artifacts)
    parser.add_argument("--steps", type=int, default=Setting().steps)
    parser.add_argument("--each", type=int, default=10, help="Held-out pictures of each artifact.")
    given = parser.parse_args()
    setting = Setting(artifacts=given.artifacts, steps=given.steps, batch=min(given.artifacts, Setting().batch))
    space = world(setting.artifacts)
    started = time.process_time()
    loss = trained(space, given.out, setting)
    seconds = time.process_time() - started
    write_table(given.out, CSPACE, space)
    figures = tried(given.out, space, each=given.each)
    sys.stdout.write(f"{json.dumps({**asdict(setting), **asdict(figures), 'loss': round(loss, 4)})}\n")
    record(
        "tiny_clip",
        title="Held-out pictures mapped by text alone, by a tiny open_clip model trained on rendered artifacts",
        command="python benchmarks/tiny_clip.py",
        table=[
            ["what", "share (95 % interval)"],
            [f"right, of {setting.artifacts} artifacts", share(figures.right, figures.pictures)],
            ["among the nearest five", share(figures.among_five, figures.pictures)],
            ["right with the names dealt out anew", share(figures.right_when_shuffled, figures.pictures)],
            ["by chance", f"{100 / setting.artifacts:.1f} %"],
            ["pictures", f"{figures.pictures:,}"],
            ["CPU seconds of training", f"{seconds:.0f}"],
        ],
    )


if __name__ == "__main__":
    main()
