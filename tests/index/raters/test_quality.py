"""Scorers held against the formulas they are named for, and their stage against kills, workers and odd images."""

import io
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import AUDITS, CSPACE
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters import quality as scoring
from culturekit.index.raters.quality import SCORERS, noise
from culturekit.recipes.cube.nested_keys import SimulatedRaters, simulated_audits
from tests.builders.judging.test_question_graph import prompts as prompts_table
from tests.builders.picture_tables import image_row, images_table
from tests.generation.simulated.simulated_models import model, portraits, wide_space
from tests.index.models.tiny_transformers import tiny_folder
from tests.metrics.corrected.audits_by_hand import matches_of

PROMPT = "a picture of Akara"


def png(size: tuple[int, int], seed: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def table_of(folder: Path, contents: list[bytes | None], prompts: list[str | None]) -> Path:
    """An images table; an image without content was refused."""
    rows: list[Mapping[str, object]] = []
    for number, (content, prompt) in enumerate(zip(contents, prompts, strict=True)):
        (folder / f"{number:04d}.png").write_bytes(content or b"")
        named = {"image_id": f"i{number:04d}", "prompt_id": f"p{number % 3}", "prompt_sent": prompt}
        row = image_row(folder, f"{number:04d}.png", **named)
        rows.append(row if content is not None else {**row, "path": "", "sha256": "", "status": "refused"})
    return images_table(folder, rows)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    mend_torchvision()
    pytest.importorskip("open_clip")
    return tiny_folder(tmp_path_factory.mktemp("models") / "clip")


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["quality", *map(str, words)], catch_exceptions=True)


def values(folder: Path) -> dict[str, float]:
    return dict(pl.read_parquet(folder / "quality.parquet").select("image_id", "value").iter_rows())


def pictures() -> list[NDArray[np.uint8]]:
    return [np.random.default_rng(n).integers(0, 256, (20 + 9 * n, 40, 3), np.uint8) for n in range(5)]


def test_clipscore_is_two_and_a_half_times_the_cosine_and_never_negative(clip: Path) -> None:
    scorer = SCORERS.make(f"clipscore:open_clip:{clip}?device=cpu")
    bare = SCORERS.make(f"clipscore:open_clip:{clip}?device=cpu&factor=1")
    encoder: Any = ENCODERS.make(f"open_clip:{clip}?device=cpu")
    texts = [PROMPT, "寿司", PROMPT, "bread", "soup"]
    cosines = (encoder.encode_images(pictures()) * encoder.encode_texts(texts)).sum(axis=1)
    assert (cosines < 0).any()
    assert (cosines > 0).any()
    np.testing.assert_allclose(scorer.score(pictures(), texts), 2.5 * np.maximum(cosines, 0), atol=1e-6)
    np.testing.assert_allclose(bare.score(pictures(), texts), np.maximum(cosines, 0), atol=1e-6)
    assert scorer.parameters["factor"] == 2.5
    assert scorer.parameters["weights"] == encoder.identity.weights


def test_hps_is_the_bare_cosine_of_the_whole_picture(clip: Path) -> None:
    import open_clip
    import torch

    scorer = SCORERS.make(f"hpsv2:{clip}?device=cpu&version=2.1")
    model = open_clip.create_model(f"local-dir:{clip}").eval()
    transform = open_clip.image_transform(32, is_train=False, resize_mode="longest", fill_color=0)
    tokens = open_clip.get_tokenizer(f"local-dir:{clip}")([PROMPT] * 5)
    with torch.inference_mode():
        seen = torch.cat([model.encode_image(transform(Image.fromarray(p))[None], normalize=True) for p in pictures()])
        peer = (seen * model.encode_text(tokens, normalize=True)).sum(dim=1).numpy()
    np.testing.assert_allclose(scorer.score(pictures(), [PROMPT] * 5), peer, atol=1e-6)
    assert scorer.name == "hpsv2.1"
    assert "longest" in scorer.parameters["preprocessing"]


def test_hps_weights_say_their_version(clip: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(clip, tmp_path / "copy")
    weights = copy / "open_clip_model.safetensors"
    save_file(load_file(weights), weights, metadata={"culturekit.kind": "hpsv2.0"})
    assert SCORERS.make(f"hpsv2:{copy}?device=cpu").name == "hpsv2.0"
    assert SCORERS.make(f"hpsv2:{clip}?device=cpu").name == "hpsv2"
    with pytest.raises(UsageError, match=r"another version; expected 2\.1, found 2\.0"):
        SCORERS.make(f"hpsv2:{copy}?device=cpu&version=2.1")


def test_pickscore_is_clips_own_score(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    mend_torchvision()
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config={**small, "vocab_size": 49408, "eos_token_id": 49407, "bos_token_id": 49406},
        vision_config={**small, "image_size": 32, "patch_size": 8}, projection_dim=8,
    )  # fmt: skip
    model = transformers.CLIPModel(config).eval()
    model.save_pretrained(tmp_path)
    transformers.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=32).save_pretrained(tmp_path)
    words = {"<|startoftext|>": 49406, "<|endoftext|>": 49407, "a</w>": 0, "b</w>": 1}
    transformers.CLIPTokenizerFast(vocab=words, merges=[], model_max_length=77).save_pretrained(tmp_path)
    scorer = SCORERS.make(f"pickscore:{tmp_path}?device=cpu")
    encoder: Any = scorer.encoder  # type: ignore[attr-defined]
    texts = ["a", "b", "a b", "b a", "a a"]
    cosines = (encoder.encode_images(pictures()) * encoder.encode_texts(texts)).sum(axis=1)
    scale = float(model.logit_scale.detach().exp())
    np.testing.assert_allclose(scorer.score(pictures(), texts), scale * cosines, rtol=1e-5)
    assert scorer.parameters["factor"] == pytest.approx(scale)


@pytest.mark.parametrize(("spec", "match"), [
    ("clipscore", "needs an encoder"), ("clipscore:embedded", "pictures and texts"),
    ("clipscore:embedded?factor=x", "factor is a number"), ("hpsv2:missing.safetensors", "neither a folder, a file"),
    ("hps", "no quality scorer 'hps'"),
])  # fmt: skip
def test_a_wrong_scorer_is_explained(clip: Path, spec: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        SCORERS.make(spec)


def test_the_stage_gives_every_image_a_value_or_a_reason(clip: Path, tmp_path: Path) -> None:
    contents = [png((30, 40), 0), b"no picture", None, png((50, 20), 1), png((9, 9), 2)]
    images = table_of(tmp_path, contents, [PROMPT, PROMPT, PROMPT, None, " "])
    spec = f"clipscore:open_clip:{clip}?device=cpu"
    answer = run("--images", images, "--scorer", spec, "--out", tmp_path / "q", "--workers", 1)
    assert answer.exit_code == 0, answer.output
    assert list(values(tmp_path / "q")) == ["i0000"]
    drops = pl.read_parquet(tmp_path / "q/drops.parquet")
    assert drops["key"].to_list() == ["i0001", "i0002", "i0003", "i0004"]
    assert drops["reason"].to_list()[1:] == ["no picture was made", "no prompt", "no prompt"]
    manifest = manifest_of(tmp_path / "q")
    assert manifest.drops["no prompt"] == 2
    assert manifest.notes["parameters"]["weights"]


def test_prompts_come_from_their_table_first(clip: Path, tmp_path: Path) -> None:
    images = table_of(tmp_path, [png((30, 40), n) for n in range(3)], ["sent", "sent", "sent"])
    prompts = prompts_table(tmp_path, {"p0": "asked", "p1": "word " * 50})
    spec = f"clipscore:open_clip:{clip}?device=cpu&factor=100"
    run("--images", images, "--scorer", spec, "--prompts", prompts, "--out", tmp_path / "q", "--workers", 1)
    scorer = SCORERS.make(spec)
    seen = [np.asarray(Image.open(tmp_path / f"{n:04d}.png")) for n in range(3)]
    wanted = scorer.score(seen, ["asked", "word " * 50, "sent"])
    np.testing.assert_allclose(list(values(tmp_path / "q").values()), wanted, atol=1e-5)
    manifest = manifest_of(tmp_path / "q")
    assert manifest.notes["prompts_cut"] == 1
    assert manifest.notes["longest_prompt_tokens"] == 52


def test_without_any_prompt_the_command_says_so(clip: Path, tmp_path: Path) -> None:
    images = table_of(tmp_path, [png((30, 40), 0)], [None])
    ended = run("--images", images, "--scorer", f"hpsv2:{clip}?device=cpu", "--out", tmp_path / "q")
    assert isinstance(ended.exception, UsageError)
    assert "no image has one" in str(ended.exception)


def test_bytes_do_not_depend_on_workers_or_cuts(clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PICTURES_PER_SHARD", 4)
    images = table_of(tmp_path, [png((20 + n, 30), n) for n in range(11)], [f"{PROMPT} {n % 4}" for n in range(11)])
    spec = f"clipscore:open_clip:{clip}?device=cpu&factor=1000"
    for workers in (1, 3):
        run("--images", images, "--scorer", spec, "--out", tmp_path / f"q{workers}", "--workers", workers)
    whole, score = (tmp_path / "q1/quality.parquet").read_bytes(), scoring.score_shard
    assert (tmp_path / "q3/quality.parquet").read_bytes() == whole
    seen: list[str] = []

    def cut(shard: scoring.RatedShard) -> int:
        seen.append(shard.items[0][0])
        if len(seen) == 2:
            raise KeyboardInterrupt
        return score(shard)

    monkeypatch.setattr(scoring, "score_shard", cut)
    for _ in range(2):
        run("--images", images, "--scorer", spec, "--out", tmp_path / "cut", "--workers", 1)
    assert (tmp_path / "cut/quality.parquet").read_bytes() == whole
    assert seen.count("i0000") == 1, "no shard is scored twice but the one in flight"


def test_a_table_of_which_no_image_can_be_scored_is_refused(tmp_path: Path) -> None:
    none = run("--images", table_of(tmp_path, [], []), "--scorer", "embedded", "--out", tmp_path / "q")
    assert isinstance(none.exception, NothingScored)
    assert "no image can be scored; found no rows" in str(none.exception)
    not_made = table_of(tmp_path, [None, None], ["soup", "soup"])
    refused = run("--images", not_made, "--scorer", "embedded", "--out", tmp_path / "q")
    assert "no image can be scored; found 2 × no picture was made" in str(refused.exception)


def test_prompts_that_a_scorer_does_not_look_at_are_refused(tmp_path: Path) -> None:
    images, prompts = table_of(tmp_path, [png((8, 8), 1)], ["soup"]), prompts_table(tmp_path, {"p0": "soup"})
    words = ("--images", images, "--scorer", "embedded", "--prompts", prompts, "--out", tmp_path / "q")
    assert "embedded looks at pictures alone; expected no --prompts" in str(run(*words).exception)


SCORER = SCORERS.make("embedded")

ARTIFACTS = 60


@pytest.fixture(scope="module", params=["", "noise=1"], ids=["artifacts", "culture-free"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[NDArray[np.uint8]]:
    space = wide_space(ARTIFACTS)
    backend = model(tmp_path_factory.mktemp("cspace"), space, request.param)
    return [picture.pixels for picture in portraits(backend, space["artifact_id"].to_list(), first_seed=0)]


def blurred(picture: NDArray[np.uint8], radius: float) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(radius)))


def noisy(picture: NDArray[np.uint8], deviation: float) -> NDArray[np.uint8]:
    grain = np.random.default_rng(0).normal(0, deviation, picture.shape)
    return np.clip(picture + grain, 0, 255).astype(np.uint8)


def faded(picture: NDArray[np.uint8], contrast: float) -> NDArray[np.uint8]:
    return (128 + (picture.astype(float) - 128) * contrast).astype(np.uint8)


def test_simulated_pictures_score_in_the_middle_of_the_range(simulated: list[NDArray[np.uint8]]) -> None:
    scores = SCORER.score(simulated)
    assert scores.dtype == np.float64
    assert np.quantile(scores, 0.05) > 0.3
    assert np.quantile(scores, 0.95) < 0.9


@pytest.mark.parametrize(
    ("worsened", "steps", "first"), [(blurred, (0, 0.8, 2), 1.2), (noisy, (0, 12, 60), 1.05), (faded, (1, 0.4, 0.1), 1)]
)
def test_blur_noise_and_lack_of_contrast_score_lower_in_every_picture(
    simulated: list[NDArray[np.uint8]], worsened: Callable[..., NDArray[np.uint8]], steps: tuple[float, ...],
    first: float,
) -> None:  # fmt: skip
    clear, worse, worst = (SCORER.score([worsened(picture, step) for picture in simulated]) for step in steps)
    assert (clear > first * worse).all()
    assert (worse > worst).all()
    assert clear.mean() > 1.5 * worst.mean()


def test_a_score_does_not_depend_on_the_batch(simulated: list[NDArray[np.uint8]]) -> None:
    together = SCORER.score(simulated)
    alone = [SCORER.score([picture])[0] for picture in simulated]
    assert together.tolist() == alone
    assert SCORER.score(simulated[::-1]).tolist() == alone[::-1]
    assert SCORER.score([]).shape == (0,)


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (900, 30), (300, 500)])
def test_any_size_can_be_scored(size: tuple[int, int]) -> None:
    grain = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    (score,) = SCORER.score([grain])
    assert 0 <= score <= 1


@pytest.mark.parametrize("level", [0, 100, 255])
def test_a_picture_without_any_edge_scores_nothing(level: int) -> None:
    assert SCORER.score([np.full((40, 50, 3), level, np.uint8)]).tolist() == [0]


def test_the_sharpest_edge_scores_best_and_an_even_ramp_nothing() -> None:
    columns = np.arange(64)
    edges = np.broadcast_to((columns // 16 % 2 * 255)[:, np.newaxis], (64, 64, 3)).astype(np.uint8)
    ramp = np.broadcast_to((columns * 4)[:, np.newaxis], (64, 64, 3)).astype(np.uint8)
    sharp, smooth = SCORER.score([edges, ramp])
    assert sharp == pytest.approx(1 / 1.1)
    assert smooth == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("deviation", [0.02, 0.1])
def test_noise_is_estimated_by_its_standard_deviation(deviation: float) -> None:
    ramp = np.linspace(0, 1, 200)
    grain = np.random.default_rng(1).normal(0, deviation, (200, 200))
    assert noise((ramp + grain).astype(np.float32)) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("spec", ["embedded:hps", "embedded?size=3"])
def test_what_it_does_not_take_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="embedded"):
        SCORERS.make(spec)


COUNTRIES = ["JP", "IN", "FR", "US"]

TRUTH = matches_of([*(COUNTRIES * 250), None])

SPACE = pl.DataFrame(
    [
        {"artifact_id": f"dish of {country}", "name": country, "concept": "cuisine", "country": country,
         "country_name": country, "continent": "somewhere", "source": "wikidata", "path": []}
        for country in COUNTRIES
    ],
    schema=CSPACE.schema,
    orient="row",
)  # fmt: skip

IMAGES = TRUTH["image_id"].to_list()


def test_raters_without_error_say_what_was_drawn() -> None:
    audits = simulated_audits(TRUTH, SPACE, IMAGES, SimulatedRaters(), seed=1)
    assert AUDITS.problems(audits) == []
    both = audits.join(TRUTH, on="image_id", suffix="_true")
    assert both.filter(pl.col("artifact_id").ne_missing(pl.col("artifact_id_true"))).is_empty()
    assert audits["none_of_these"].sum() == 1


def test_raters_err_as_often_as_they_are_told_to_and_each_on_their_own() -> None:
    audits = simulated_audits(TRUTH, SPACE, IMAGES, SimulatedRaters(raters=3, accuracy=0.8), seed=1)
    both = audits.join(TRUTH, on="image_id", suffix="_true")
    right = both.group_by("annotator").agg((pl.col("country") == pl.col("country_true")).mean()).sort("annotator")
    assert right["annotator"].to_list() == ["simulated-1", "simulated-2", "simulated-3"]
    assert all(abs(share - 0.8) < 0.05 for share in right["country"])
    wrong = both.pivot("annotator", index="image_id", values="country")
    assert wrong.filter(pl.col("simulated-1") != pl.col("simulated-2")).height > 200


def test_an_image_is_labelled_alike_whoever_else_is_audited() -> None:
    how = SimulatedRaters(accuracy=0.5)
    every = simulated_audits(TRUTH, SPACE, IMAGES, how, seed=1)
    some = simulated_audits(TRUTH, SPACE, IMAGES[100:200], how, seed=1)
    assert some.equals(every.filter(pl.col("image_id").is_in(IMAGES[100:200])))
    assert not every.equals(simulated_audits(TRUTH, SPACE, IMAGES, how, seed=2))
