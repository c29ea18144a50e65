import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.core.errors import UsageError
from culturekit.generation.backend import BACKENDS, Failure, ImageReply, ImageRequest, Picture
from tests.generation.diffusion.tiny_pipelines import prompts_of, tiny

torch: Any = pytest.importorskip("torch")
diffusers: Any = pytest.importorskip("diffusers")
pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SIDE = 16
Folders = Callable[[str], Path]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("pipelines")
    return lambda kind: tiny(root, kind)


def asked(number: int, text: str = "a dish", negative: str | None = None, side: int = SIDE) -> ImageRequest:
    return ImageRequest(f"p{number}", f"{text} {number}", negative, 7 + number, 0, 0, None, None, None, side, side)


def answers(spec: str, requests: list[ImageRequest]) -> list[ImageReply]:
    return BACKENDS.make(f"diffusers:{spec}&device=cpu").generate(requests)


def pixels(reply: ImageReply) -> Any:
    assert isinstance(reply, Picture), reply
    return reply.pixels.astype(int)


def params(reply: ImageReply) -> Any:
    assert isinstance(reply, Picture), reply
    return reply.provider_params


SANA = pytest.param("sana", marks=pytest.mark.slow)
"""It draws 512 pixels, however few are asked for."""


@pytest.mark.parametrize(
    "kind", ["sdxl", "sd3", "flux", "flux2", "flux2-klein", "hunyuan", "hunyuan-distilled", "qwen", SANA, "z-image"]
)
def test_a_seed_gives_its_picture_alone_in_a_batch_and_again(folders: Folders, kind: str) -> None:
    requests = [asked(number) for number in range(8)]
    eight = answers(f"{folders(kind)}?steps=2&batch=8", requests)
    one = answers(f"{folders(kind)}?steps=2&batch=1", requests)
    few = answers(f"{folders(kind)}?steps=2&batch=8", requests[5:7])
    for together, alone in zip(eight, one, strict=True):
        assert np.abs(pixels(together) - pixels(alone)).max() <= 1
    assert all(np.array_equal(pixels(whole), pixels(part)) for whole, part in zip(eight[5:7], few, strict=True)), (
        "whatever else is in a batch, the bits are the same"
    )
    assert np.abs(pixels(eight[0]) - pixels(eight[1])).mean() > 5, "other seeds are other pictures"
    assert isinstance(eight[0], Picture)
    assert eight[0].seed_honoured


def test_the_pictures_are_those_of_diffusers_itself(folders: Folders) -> None:
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folders("sdxl"), use_safetensors=True)
    pipeline.set_progress_bar_config(disable=True)
    requests = [asked(number, negative="blurred") for number in range(2)]
    theirs = pipeline(
        prompt=[one.text for one in requests], negative_prompt=["blurred"] * 2, width=SIDE, height=SIDE,
        generator=[torch.Generator("cpu").manual_seed(one.seed) for one in requests],
        num_inference_steps=3, guidance_scale=4.0,
    ).images  # fmt: skip
    ours = answers(f"{folders('sdxl')}?steps=3&guidance=4&batch=2", requests)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.abs(pixels(mine) - np.asarray(other).astype(int)).max() <= 1


def test_what_is_recorded_says_how_a_picture_was_made(folders: Folders) -> None:
    (reply,) = answers(f"{folders('sdxl')}?steps=2&guidance=3&negative=fog", [asked(1)])
    told = params(reply)
    expected = {
        "pipeline": "StableDiffusionXLPipeline", "scheduler": "EulerDiscreteScheduler", "steps": 2, "guidance": 3.0,
        "dtype": "float32", "device": "cpu", "negative_prompt": "fog", "batch": 1,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    assert "findings" not in told


def test_a_refiner_takes_over_after_the_high_noise(folders: Folders) -> None:
    spec = f"{folders('sdxl')}?steps=4&refiner={folders('sdxl-refiner')}"
    (half,) = answers(f"{spec}&high_noise=0.5", [asked(1)])
    (most,) = answers(f"{spec}&high_noise=0.75", [asked(1)])
    (alone,) = answers(f"{folders('sdxl')}?steps=4", [asked(1)])
    assert params(half)["refiner"]["high_noise"] == 0.5
    assert not np.array_equal(pixels(half), pixels(most))
    assert not np.array_equal(pixels(half), pixels(alone))
    with pytest.raises(UsageError, match="cannot share the steps"):
        answers(f"{folders('flux')}?refiner={folders('sdxl-refiner')}", [asked(1)])


def test_a_negative_prompt_without_effect_is_said_and_one_with_effect_is_sent(folders: Folders) -> None:
    (idle,) = answers(f"{folders('flux')}?steps=1", [asked(1, negative="fog")])
    (none,) = answers(f"{folders('flux')}?steps=1", [asked(1)])
    (sent,) = answers(f"{folders('flux')}?steps=1&true_guidance=3", [asked(1, negative="fog")])
    assert np.array_equal(pixels(idle), pixels(none))
    assert "no effect" in params(idle)["findings"][0]
    assert params(idle)["negative_prompt_left_out"] == "fog"
    assert params(sent)["negative_prompt"] == "fog"
    assert not np.array_equal(pixels(sent), pixels(none))


def test_a_prompt_longer_than_a_context_is_said_for_each_text_encoder(folders: Folders) -> None:
    long, short = asked(1, "x" * 100), asked(2)
    told = [params(reply) for reply in answers(f"{folders('sd3')}?steps=1&tokens=90", [long, short])]
    assert told[0]["prompt_cut"] == {"tokenizer": [103, 77], "tokenizer_2": [103, 77], "tokenizer_3": [104, 90]}
    assert "the prompt is longer than the 77 tokens of tokenizer_2" in told[0]["findings"]
    assert "prompt_cut" not in told[1]


def broken(folder: Path, to: Path, part: str, change: Callable[[Any], Any], name: str = "") -> Path:
    """Copy a pipeline and change numbers of one part."""
    shutil.copytree(folder, to)
    path = next((to / part).glob("*.safetensors"))
    tensors = load_file(path)
    for key in [key for key in tensors if name in key]:
        tensors[key] = change(tensors[key])
    save_file(tensors, path, metadata={"format": "pt"})
    return to


def test_a_decoder_that_overflows_in_half_precision_is_tried_again_in_float32(folders: Folders, tmp_path: Path) -> None:
    wide = broken(folders("sdxl"), tmp_path / "wide", "vae", lambda x: x * 3e5, "decoder.conv_in")
    config = json.loads((wide / "vae/config.json").read_text())
    (wide / "vae/config.json").write_text(json.dumps({**config, "force_upcast": False}))
    (reply,) = answers(f"{wide}?steps=1&dtype=float16", [asked(1)])
    assert params(reply)["vae"] == "float32"
    assert params(reply)["findings"] == ["not finite in float16, decoded again in float32"]
    (always,) = answers(f"{wide}?steps=1&dtype=float16&vae=float32", [asked(1)])
    assert np.array_equal(pixels(reply), pixels(always))
    assert "findings" not in params(always)


@pytest.mark.parametrize("part", ["vae", "unet"])
def test_numbers_that_are_no_picture_are_a_failure(folders: Folders, tmp_path: Path, part: str) -> None:
    bad = broken(folders("sdxl"), tmp_path / "bad", part, lambda x: x * float("nan"), "conv_out")
    replies = answers(f"{bad}?steps=1&dtype=float16&batch=2", [asked(1), asked(2)])
    assert all(isinstance(reply, Failure) and reply.status == "failed" for reply in replies)
    assert "also with a decoder in float32" in str(replies[0])


def test_a_picture_of_one_colour_is_said(folders: Folders, tmp_path: Path) -> None:
    grey = broken(folders("sdxl"), tmp_path / "grey", "vae", lambda x: x * 0, "decoder.conv_out")
    (reply,) = answers(f"{grey}?steps=1", [asked(1)])
    assert params(reply)["findings"] == ["the whole picture is #808080"]


def test_only_safetensors_are_read(folders: Folders, tmp_path: Path) -> None:
    pickled = Path(shutil.copytree(folders("sdxl"), tmp_path / "pickled"))
    (pickled / "unet/diffusion_pytorch_model.safetensors").rename(pickled / "unet/diffusion_pytorch_model.bin")
    with pytest.raises(UsageError, match="pickle, which can run any code"):
        answers(f"{pickled}?steps=1", [asked(1)])


def test_code_that_comes_with_a_pipeline_is_not_run(folders: Folders, tmp_path: Path) -> None:
    def changed(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
        folder = Path(shutil.copytree(folders("sdxl"), tmp_path / name))
        index = folder / "model_index.json"
        index.write_text(json.dumps(change(json.loads(index.read_text()))))
        return folder

    named = changed("named", lambda index: {**index, "_class_name": ["pipeline", "Mine"]})
    unknown = changed("unknown", lambda index: {**index, "_class_name": "MyPipeline"})
    part = changed("part", lambda index: {**index, "unet": ["my_unet", "MyUnet"]})
    code = changed("code", lambda index: index)
    (code / "unet/my_unet.py").write_text("raise SystemExit")
    for folder in (named, unknown, part, code):
        with pytest.raises(UsageError, match="code of its own, which is never run"):
            answers(f"{folder}?steps=1", [asked(1)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("offload=model", "nothing to keep out"),
        ("true_guidance=2", "no true_cfg_scale"),
        ("tokens=64", "no max_sequence_length"),
        ("high_noise=0.5", "before a refiner"),
        ("lora_scale=1", "there are none"),
        ("revision=main", "only a hub id has revisions"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(folders: Folders, options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        answers(f"{folders('sdxl')}?{options}", [asked(1)])


def test_a_size_that_a_pipeline_cannot_make_is_said(folders: Folders) -> None:
    with pytest.raises(UsageError, match="refuses what it is asked for"):
        answers(f"{folders('sdxl')}?steps=1", [asked(1, side=13)])


def test_adapters_from_a_folder_change_the_picture_and_are_recorded(folders: Folders, tmp_path: Path) -> None:
    peft: Any = pytest.importorskip("peft")
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folders("sdxl"), use_safetensors=True)
    pipeline.unet.add_adapter(peft.LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False))
    layers = peft.get_peft_model_state_dict(pipeline.unet)
    diffusers.StableDiffusionXLPipeline.save_lora_weights(tmp_path / "lora", unet_lora_layers=layers)
    spec = f"{folders('sdxl')}?steps=2"
    (plain,) = answers(spec, [asked(1)])
    (adapted,) = answers(f"{spec}&lora={tmp_path / 'lora'}", [asked(1)])
    (idle,) = answers(f"{spec}&lora={tmp_path / 'lora'}&lora_scale=0", [asked(1)])
    assert np.abs(pixels(plain) - pixels(adapted)).max() > 2
    assert np.abs(pixels(plain) - pixels(idle)).max() <= 1
    assert params(adapted)["lora"][0]["scale"] == 1.0
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled/pytorch_lora_weights.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="adapters are a pickle"):
        answers(f"{spec}&lora={tmp_path / 'pickled'}", [asked(1)])


@pytest.mark.slow
def test_the_command_gives_the_same_bytes_with_any_number_of_workers(folders: Folders, tmp_path: Path) -> None:
    from culturekit.cli.app import app

    prompts = prompts_of(tmp_path, 9)
    spec = f"diffusers:{folders('sdxl')}?steps=1&device=cpu&batch=2"
    for workers in (1, 3):
        arguments = ["generate", "--backend", spec, "--prompts", prompts, "--out", tmp_path / f"out-{workers}"]
        done = CliRunner().invoke(app, [*map(str, arguments), "--size", "16x16", "--workers", str(workers)])
        assert done.exit_code == 0, done.output
    one, three = (pl.read_parquet(tmp_path / f"out-{workers}/images.parquet") for workers in (1, 3))
    assert one.equals(three)
    assert one["seed_honoured"].all()
    assert one["model_version"][0].startswith("sha256:")


def test_lanes_share_weights_and_nothing_that_keeps_state(folders: Folders) -> None:
    backend: Any = BACKENDS.make(f"diffusers:{folders('sd3')}?steps=1&device=cpu")
    with backend.lanes(3) as lanes:
        bases = [lane.call.loaded.base for lane in lanes]
    for name in ("scheduler", "tokenizer", "tokenizer_2", "tokenizer_3"):
        assert len({id(getattr(base, name)) for base in bases}) == 3, name
    assert len({id(base.transformer) for base in bases}) == 1
