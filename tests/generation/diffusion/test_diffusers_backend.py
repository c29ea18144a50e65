import importlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.generation.backend import BACKENDS, Failure, ImageReply, ImageRequest, Picture
from culturekit.generation.diffusion.diffusers_calls import guidance_of, install_line_for
from culturekit.generation.diffusion.diffusers_folder import Options
from tests.generation.diffusion.tiny_pipelines import prompts_of, script, tiny

torch: Any = pytest.importorskip("torch")
diffusers: Any = pytest.importorskip("diffusers")
pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # fmt: skip

ROOT = Path(__file__).parents[3]
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


def drawn(folder: Path, options: str, text: str = "a dish", negative: str | None = None) -> Picture:
    request = ImageRequest("p1", text, negative, 8, 0, 0, None, None, None, SIDE, SIDE)
    (reply,) = answers(f"{folder}?{options}", [request])
    assert isinstance(reply, Picture), reply
    return reply


def generated(spec: str, prompts: Path, out: Path, *more: str) -> int:
    """Run the command; give its exit code."""
    words = ["generate", "--backend", f"diffusers:{spec}", "--prompts", prompts, "--out", out, "--size", "16x16", *more]
    return CliRunner().invoke(app, [*map(str, words)]).exit_code


def adapter(folders: Folders, out: Path) -> Path:
    """Save a LoRA adapter of the tiny SDXL with random numbers."""
    peft: Any = pytest.importorskip("peft")
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folders("sdxl"), use_safetensors=True)
    pipeline.unet.add_adapter(peft.LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False))
    layers = peft.get_peft_model_state_dict(pipeline.unet)
    diffusers.StableDiffusionXLPipeline.save_lora_weights(out, unet_lora_layers=layers)
    return out


SANA = pytest.param("sana", marks=pytest.mark.slow)  # it draws 512 pixels, however few are asked for


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


def test_a_prompt_longer_than_a_context_is_said_for_each_text_encoder(folders: Folders) -> None:
    long, short = asked(1, "x" * 100), asked(2)
    told = [params(reply) for reply in answers(f"{folders('sd3')}?steps=1&tokens=90", [long, short])]
    assert told[0]["prompt_cut"] == {"tokenizer": [103, 77], "tokenizer_2": [103, 77], "tokenizer_3": [104, 90]}
    assert "the prompt is longer than the 77 tokens of tokenizer_2" in told[0]["findings"]
    assert "prompt_cut" not in told[1]


def broken(folder: Path, to: Path, part: str, change: Callable[[Any], Any], name: str = "") -> Path:
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


def test_only_safetensors_are_read_and_a_size_that_cannot_be_made_is_said(folders: Folders, tmp_path: Path) -> None:
    pickled = Path(shutil.copytree(folders("sdxl"), tmp_path / "pickled"))
    (pickled / "unet/diffusion_pytorch_model.safetensors").rename(pickled / "unet/diffusion_pytorch_model.bin")
    with pytest.raises(UsageError, match="pickle, which can run any code"):
        answers(f"{pickled}?steps=1", [asked(1)])
    with pytest.raises(UsageError, match="refuses what it is asked for"):
        answers(f"{folders('sdxl')}?steps=1", [asked(1, side=13)])


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


@pytest.mark.parametrize(("options", "words"), [
    ("offload=model", "nothing to keep out"), ("true_guidance=2", "no true_cfg_scale"),
    ("tokens=64", "no max_sequence_length"), ("high_noise=0.5", "before a refiner"), ("lora_scale=1", "there are none"),
    ("revision=main", "only a hub id has revisions"),
])  # fmt: skip
def test_an_option_that_would_do_nothing_is_refused(folders: Folders, options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        answers(f"{folders('sdxl')}?{options}", [asked(1)])


def test_adapters_from_a_folder_change_the_picture_and_are_recorded(folders: Folders, tmp_path: Path) -> None:
    adapter(folders, tmp_path / "lora")
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


@pytest.mark.parametrize(
    ("kind", "own"), [("sd3", ("scheduler", "tokenizer", "tokenizer_2", "tokenizer_3")), ("hunyuan", ("guider",))]
)
def test_lanes_share_weights_and_nothing_that_keeps_state(folders: Folders, kind: str, own: tuple[str, ...]) -> None:
    backend: Any = BACKENDS.make(f"diffusers:{folders(kind)}?steps=1&device=cpu&guidance=5")
    with backend.lanes(3) as lanes:
        bases = [lane.call.loaded.base for lane in lanes]
        assert kind == "sd3" or {base.guider.guidance_scale for base in bases} == {5.0}
    for name in own:
        assert len({id(getattr(base, name)) for base in bases}) == 3, name
    assert len({id(base.transformer) for base in bases}) == 1


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
    requests = [asked(number) for number in range(3)]
    black = answers(f"{with_safety_checker(tmp_path / 'strict', strict=True)}?steps=1&batch=2", requests)
    assert [type(reply) for reply in black] == [Failure] * 3
    assert all(isinstance(reply, Failure) and reply.status == "refused" for reply in black)
    assert "safety checker" in str(black[0])
    shown = drawn(with_safety_checker(tmp_path / "mild", strict=False), "steps=1")
    assert shown.safety == "passed"
    assert shown.pixels.any()


def test_each_device_has_its_weights_and_workers_and_devices_change_no_byte(folders: Folders, tmp_path: Path) -> None:
    prompts, sdxl = prompts_of(tmp_path, 7), folders("sdxl")
    tables = []
    for workers, devices in ((1, "cpu"), (3, "cpu"), (3, "cpu,cpu")):
        spec, out = f"{sdxl}?steps=1&batch=2&device={devices}", tmp_path / f"{workers}-{len(devices)}"
        assert generated(spec, prompts, out, "--workers", str(workers)) == 0
        tables.append(pl.read_parquet(out / "images.parquet"))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert tables[0]["seed_honoured"].all()
    assert tables[0]["model_version"][0].startswith("sha256:")
    backend: Any = BACKENDS.make(f"diffusers:{sdxl}?steps=1&device=cpu,cpu")
    with backend.lanes(5) as lanes:
        assert len({id(lane.call.loaded.base.unet) for lane in lanes}) == len(lanes) == 2
    backend.release()
    assert backend.laid == []
    with pytest.raises(UsageError, match="a list of devices names each"):
        BACKENDS.make(f"diffusers:{sdxl}?device=auto,cpu")


def test_only_the_part_that_takes_the_noise_away_is_compiled(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, *given, **named: compiled.append(type(self).__name__))
    plain, told = (drawn(folders("sdxl"), f"steps=1{more}") for more in ("", "&compile=true"))
    assert compiled == ["UNet2DConditionModel"]
    assert np.array_equal(plain.pixels, told.pixels)


def test_a_pipeline_without_negative_prompts_is_known_and_sent_none() -> None:
    class Consistent:
        def __call__(self, prompt: str, guidance_scale: float = 8.5) -> None: ...

    guidance = guidance_of(Consistent(), Options())
    assert guidance.no_negative == "Consistent has no negative prompts"
    assert guidance.negative(asked(1, negative="fog"), Options()) is None
    assert guidance.negative(asked(1), Options(negative="fog")) is None


# Pipelines in which guidance, negative prompts and tokenizers are not what they are in SDXL.


@pytest.mark.parametrize("kind", ["flux2", "flux2-klein-base", "hunyuan", "hunyuan-distilled", "sana", "z-image"])
def test_guidance_is_heeded_and_recorded(folders: Folders, kind: str) -> None:
    little, much = (drawn(folders(kind), f"steps=2&guidance={strength}") for strength in (1.5, 9))
    assert (little.provider_params["guidance"], much.provider_params["guidance"]) == (1.5, 9.0)
    assert not np.array_equal(little.pixels, much.pixels)


@pytest.mark.parametrize("kind", ["flux2-klein", "qwen"])
def test_guidance_that_a_pipeline_leaves_out_is_refused(folders: Folders, kind: str) -> None:
    with pytest.raises(UsageError, match="not trained to be told guidance_scale"):
        drawn(folders(kind), "steps=1&guidance=3")
    assert drawn(folders(kind), "steps=1").provider_params["guidance"] is None


@pytest.mark.parametrize(("kind", "options", "words"), [
    ("hunyuan", "guidance=3", ""), ("z-image", "guidance=0.5", ""), ("sana", "guidance=3", ""),
    ("flux", "true_guidance=3", ""), ("flux", "batch=1", "no effect"),
    ("z-image", "guidance=0", "only with guidance above 0"), ("flux2", "guidance=4", "has no negative prompts"),
    ("hunyuan", "guidance=1", "only with a guider at work"),
    ("hunyuan-distilled", "guidance=3", "only with a guider at work"),
])  # fmt: skip
def test_a_negative_prompt_is_sent_only_with_effect(folders: Folders, kind: str, options: str, words: str) -> None:
    without, other = (drawn(folders(kind), f"steps=2&{options}", negative=text) for text in (None, "fog"))
    assert words in str(other.provider_params.get("findings"))
    assert other.provider_params["negative_prompt_left_out" if words else "negative_prompt"] == "fog"
    assert np.array_equal(without.pixels, other.pixels) == bool(words)


def test_what_a_conversation_adds_counts_against_the_tokens_that_are_read(folders: Folders) -> None:
    words = len("user\n\nassistant\n") + 3  # around the 20 letters, with the signs between turns
    whole, cut = (
        drawn(folders("z-image"), f"steps=1&tokens={20 + words - less}", "x" * 20).provider_params for less in (0, 1)
    )
    assert "prompt_cut" not in whole
    assert cut["prompt_cut"] == {"tokenizer": [20 + words, 19 + words]}
    long = drawn(folders("flux2"), "steps=1", "y" * 400).provider_params
    system = str(diffusers.Flux2Pipeline(**dict.fromkeys(PARTS)).system_message)
    assert long["prompt_cut"]["tokenizer"][0] > 400 + len(system)  # type: ignore[index]


PARTS = ("scheduler", "vae", "text_encoder", "tokenizer", "transformer")


NO_TORCHVISION = """
import importlib.metadata, importlib.util, sys
find, version = importlib.util.find_spec, importlib.metadata.version
importlib.util.find_spec = lambda name, package=None: None if name == "torchvision" else find(name, package)
def installed(name):
    if name == "torchvision":
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = installed
from culturekit.core.errors import MissingDependency
from culturekit.generation.backend import BACKENDS
try:
    with BACKENDS.make(f"diffusers:{sys.argv[1]}?steps=1&device=cpu").lanes(1):
        print("loaded")
except MissingDependency as error:
    print(error)
"""


@pytest.mark.slow
def test_a_pipeline_that_needs_torchvision_says_so_where_there_is_none(folders: Folders) -> None:
    told = [
        subprocess.run([sys.executable, "-c", NO_TORCHVISION, folders(kind)], capture_output=True, text=True,
            check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}).stdout for kind in ("flux2", "sdxl")
    ]  # fmt: skip
    assert "PixtralProcessor requires the Torchvision library" in told[0]
    assert "culturekit[embed,generate]" in told[0]
    assert told[1] == "loaded\n"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(text.startswith("torchvision") for text in extras["embed"]), "what the hint names brings it"


def test_a_package_that_no_extra_brings_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ImportError("T5Tokenizer requires the SentencePiece library but it was not found in your environment.")
    assert install_line_for(needed).endswith(" sentencepiece")
    assert install_line_for(ImportError(name="ftfy")).endswith(" ftfy")
    assert "'culturekit[embed,generate]'" in install_line_for(ImportError("requires the PyTorch library"))
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert "--force-reinstall" in install_line_for(ImportError("It requires the Torchvision library"))


def hub_of(home: Path, name: str, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> str:
    """Lay a repository into a cache of the hub, which is switched off."""
    hub: Any = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(home))
    monkeypatch.setattr(
        importlib.import_module("huggingface_hub._snapshot_download").constants, "HF_HUB_CACHE", str(home)
    )
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    commit, place = "c" * 40, home / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs/main").write_text(commit)
    for file, content in files.items():
        path = place / "snapshots" / commit / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return commit


def test_adapters_come_from_the_hub_by_id(folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (adapter(folders, tmp_path / "lora") / "pytorch_lora_weights.safetensors").read_bytes()
    home = tmp_path / "hub"
    commit = hub_of(
        home, "owner/usual", {"pytorch_lora_weights.safetensors": content, "more.safetensors": b""}, monkeypatch
    )
    hub_of(home, "owner/many", {"a.safetensors": content, "steps/b.safetensors": content}, monkeypatch)
    local = drawn(folders("sdxl"), f"steps=1&lora={tmp_path / 'lora'}")
    for target in ("owner/usual", f"owner/usual&lora_revision={commit}", "owner/many/steps/b.safetensors"):
        hers = drawn(folders("sdxl"), f"steps=1&lora={target}")
        assert np.array_equal(hers.pixels, local.pixels), target
        notes: Any = hers.provider_params["lora"]
        assert [note["sha256"] for note in notes] == [digest_bytes(content)]
    assert not np.array_equal(drawn(folders("sdxl"), "steps=1").pixels, local.pixels)
    with pytest.raises(UsageError, match="no safetensors in the local cache"):
        drawn(folders("sdxl"), "steps=1&lora=owner/none")
    with pytest.raises(UsageError, match="only a hub id has revisions"):
        drawn(folders("sdxl"), f"steps=1&lora={tmp_path / 'lora'}&lora_revision=main")
