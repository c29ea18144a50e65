"""What pipelines can do besides drawing: black pictures, several devices, one part compiled, no negatives."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import UsageError
from culturekit.generation.backend import BACKENDS, Failure, ImageReply, ImageRequest, Picture
from culturekit.generation.diffusion.diffusers_calls import guidance_of
from culturekit.generation.diffusion.diffusers_folder import Options
from tests.generation.diffusion.tiny_pipelines import prompts_of, script, tiny

torch: Any = pytest.importorskip("torch")
diffusers: Any = pytest.importorskip("diffusers")
pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SIDE = 16


@pytest.fixture(scope="module")
def sdxl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("pipelines"))


def asked(number: int, negative: str | None = None) -> ImageRequest:
    return ImageRequest(f"p{number}", f"a dish {number}", negative, 7 + number, 0, 0, None, None, None, SIDE, SIDE)


def answers(spec: str, count: int) -> list[ImageReply]:
    return BACKENDS.make(f"diffusers:{spec}").generate([asked(number) for number in range(count)])


def with_safety_checker(folder: Path, *, strict: bool) -> Path:
    """Save a tiny Stable Diffusion whose checker finds everything or nothing."""
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    made: Any = script()
    torch.manual_seed(0)
    eyes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 32, "patch_size": 8}  # fmt: skip
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=eyes, projection_dim=8))
    for name in ("concept_embeds_weights", "special_care_embeds_weights"):
        getattr(checker, name).data.fill_(-2.0 if strict else 2.0)
    tokenizer = made.clip_tokenizer()
    unet = diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=32, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=made.WIDTH, attention_head_dim=2, norm_num_groups=8,
    )  # fmt: skip
    pipeline = diffusers.StableDiffusionPipeline(
        unet=unet, vae=made.decoder(4), scheduler=diffusers.EulerDiscreteScheduler(), tokenizer=tokenizer,
        text_encoder=made.clip_encoder(tokenizer, projected=False), safety_checker=checker,
        feature_extractor=CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
    )  # fmt: skip
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


def test_pictures_that_a_safety_checker_blacked_out_are_refused(tmp_path: Path) -> None:
    black = answers(f"{with_safety_checker(tmp_path / 'strict', strict=True)}?steps=1&device=cpu&batch=2", 3)
    assert [type(reply) for reply in black] == [Failure] * 3
    assert all(isinstance(reply, Failure) and reply.status == "refused" for reply in black)
    assert "safety checker" in str(black[0])
    (shown,) = answers(f"{with_safety_checker(tmp_path / 'mild', strict=False)}?steps=1&device=cpu", 1)
    assert isinstance(shown, Picture)
    assert shown.safety == "passed"
    assert shown.pixels.any()


def test_each_device_of_a_list_has_weights_of_its_own_and_the_bytes_stay(sdxl: Path, tmp_path: Path) -> None:
    prompts = prompts_of(tmp_path, 7)
    tables = {}
    for devices in ("cpu", "cpu,cpu"):
        out = tmp_path / devices.replace(",", "-")
        spec = f"diffusers:{sdxl}?steps=1&batch=2&device={devices}"
        arguments = ["generate", "--backend", spec, "--prompts", prompts, "--out", out, "--size", "16x16"]
        done = CliRunner().invoke(app, [*map(str, arguments)])
        assert done.exit_code == 0, done.output
        tables[devices] = pl.read_parquet(out / "images.parquet")
    assert tables["cpu"].equals(tables["cpu,cpu"])
    backend: Any = BACKENDS.make(f"diffusers:{sdxl}?steps=1&device=cpu,cpu")
    with backend.lanes(5) as lanes:
        assert len({id(lane.call.loaded.base.unet) for lane in lanes}) == len(lanes) == 2
    backend.release()
    assert backend.laid == []
    with pytest.raises(UsageError, match="a list of devices names each"):
        BACKENDS.make(f"diffusers:{sdxl}?device=auto,cpu")


def test_only_the_part_that_takes_the_noise_away_is_compiled(sdxl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, *given, **named: compiled.append(type(self).__name__))
    (plain,), (told,) = (answers(f"{sdxl}?steps=1&device=cpu{more}", 1) for more in ("", "&compile=true"))
    assert compiled == ["UNet2DConditionModel"]
    assert isinstance(plain, Picture)
    assert isinstance(told, Picture)
    assert np.array_equal(plain.pixels, told.pixels)


def test_a_pipeline_without_negative_prompts_is_known_and_sent_none() -> None:
    class Consistent:
        def __call__(self, prompt: str, guidance_scale: float = 8.5) -> None: ...

    guidance = guidance_of(Consistent(), Options())
    assert guidance.no_negative == "Consistent has no negative prompts"
    assert guidance.negative(asked(1, negative="fog"), Options()) is None
    assert guidance.negative(asked(1), Options(negative="fog")) is None
