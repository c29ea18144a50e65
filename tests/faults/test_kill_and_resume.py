import io
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.defaults import PICTURES_PER_SHARD
from culturekit.core.digests import digest_bytes, digest_file
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import write_table
from tests.builders.counting_encoder import logged
from tests.conftest import SMALL
from tests.effort import THOROUGH
from tests.faults.kill_and_resume import content, kill_and_resume, run_command
from tests.recipes.shipped_recipes import SMALL as SHIPPED

# Small, and with every kind of stage of the recipe
INCLUSION = (
    "models=[{name: local, backend: 'simulated-objects?crude=0.1'}]", "images.slots=4", "photographs.each=8",
    "extractors=[{name: captioner, encoder: 'simulated-objects?blur=0.9'}]", "people.images=2", "people.far=0",
)  # fmt: skip

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "stated", "kills", "longest"),
    [
        pytest.param(SMALL, (), 3, 3.0, id="small"),
        pytest.param(RECIPES / "cube.yaml", (), 30 if THOROUGH else 4, 5.0, id="cube"),
        *(
            pytest.param(RECIPES / f"{name}.yaml", SHIPPED[name], 30 if THOROUGH else 3, 6.0, id=name)
            for name in ("c3", "cultivate", "linguistic")
        ),
        pytest.param(RECIPES / "inclusion.yaml", INCLUSION, 6 if THOROUGH else 3, 6.0, id="inclusion"),
    ],
)
def test_killed_runs_of_a_recipe_end_in_the_same_bytes(
    tmp_path: Path, recipe: Path, stated: tuple[str, ...], kills: int, longest: float
) -> None:
    command = partial(run_command, recipe, stated=stated)
    result = kill_and_resume(command, tmp_path, kills=kills, seed=5, longest=longest)
    assert result.kills >= kills
    assert result.different == []


def test_the_comparison_sees_a_single_changed_byte(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage/table.parquet").write_bytes(b"one")
    (tmp_path / "stage/run.json").write_bytes(b"{}")
    before = content(tmp_path)
    (tmp_path / "stage/table.parquet").write_bytes(b"onf")
    (tmp_path / "stage/run.json").write_bytes(b"other")
    assert [name for name in before if content(tmp_path)[name] != before[name]] == ["stage/table.parquet"]


def many_pictures(root: Path, count: int) -> None:
    """Make a folder of pictures of several kinds, some of them broken."""
    chance = np.random.default_rng(5)
    for number in range(count):
        folder = root / f"{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = chance.integers(0, 255, (24, 24, 4), dtype=np.uint8)
        form, mode = (("PNG", "RGB"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("WEBP", "RGB"))[number % 4]
        buffer = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(buffer, form)
        bytes_of = buffer.getvalue()[: 20 if number % 50 == 49 else None]
        (folder / f"dish-{number % 40}_{number}.{form.lower()}").write_bytes(bytes_of)


@pytest.mark.slow
def test_a_killed_intake_of_a_folder_ends_in_the_same_bytes(tmp_path: Path) -> None:
    many_pictures(tmp_path / "pictures", 1200)
    spec = f"folder:{tmp_path / 'pictures'}?pattern={{prompt}}_{{id}}"
    words = [sys.executable, "-m", "culturekit", "generate", "--backend", spec, "--workers", "2", "--out"]
    result = kill_and_resume(lambda out: [*words, str(out)], tmp_path, kills=3, seed=2, longest=4.0, fine=(1,))
    assert result.kills >= 3
    assert result.different == []


EMBED = """\
import sys
from culturekit.cli.app import app
from tests.builders.counting_encoder import register
register()
app(sys.argv[1:])
"""


def pictures_of_one_colour(folder: Path, count: int) -> Path:
    """List pictures, each of another colour."""
    folder.mkdir()
    rows = []
    for number in range(count):
        path = folder / f"{number:06d}.png"
        Image.new("RGB", (64, 64), f"#{number * 7:06x}").save(path)
        rows.append({
            "image_id": path.stem, "path": path.name, "model": "simulated", "rewriter": "off", "provider_params": "{}",
            "sha256": digest_bytes(path.read_bytes()), "width": 64, "height": 64, "status": "ok",
        })  # fmt: skip
    return write_table(folder, IMAGES, pl.DataFrame(rows, schema=IMAGES.schema))


def vectors_of(out: Path) -> dict[str, str]:
    return {path.name: digest_file(path) for path in out.glob("*") if path.suffix in {".npy", ".parquet"}}


@pytest.mark.endtoend
def test_a_killed_embedding_encodes_no_more_again_than_the_shards_that_were_in_flight(tmp_path: Path) -> None:
    log, workers = tmp_path / "log", 2
    images = pictures_of_one_colour(tmp_path / "images", 700)
    words = ["index", "embed", "--images", str(images), "--encoder", f"counting?batch=32&slow=0.1&log={log}"]
    rounds: list[tuple[int, int, int]] = []

    def ended(hits: int) -> None:
        rounds.append((hits, len(logged(log)), len(set(logged(log)))))
        log.unlink()

    result = kill_and_resume(
        lambda out: [sys.executable, "-c", EMBED, *words, "--workers", str(workers), "--out", str(out)],
        tmp_path, kills=2, seed=4, compared=vectors_of, ended=ended,
    )  # fmt: skip
    (_, once, _), *killed = rounds
    assert result.kills >= 2
    assert result.different == []
    assert [alike for _, _, alike in killed] == [once] * len(killed)
    assert sum(encoded - once for _, encoded, _ in killed) <= result.kills * workers * PICTURES_PER_SHARD
