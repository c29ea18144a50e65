"""Pipelines in which guidance, negative prompts and tokenizers are not what they are in SDXL."""

import importlib
import os
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
from culturekit.generation.backend import BACKENDS, ImageReply, ImageRequest, Picture
from tests.generation.diffusion.tiny_pipelines import prompts_of, tiny

pytest.importorskip("torch")
diffusers: Any = pytest.importorskip("diffusers")
pytest.importorskip("transformers")
from culturekit.generation.diffusion.diffusers_backend import DiffusersLane  # noqa: E402
from culturekit.generation.diffusion.diffusers_calls import install_line_for  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ROOT = Path(__file__).parents[3]
Folders = Callable[[str], Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("pipelines")
    return lambda kind: tiny(root, kind)


def asked(text: str = "a dish", negative: str | None = None) -> ImageRequest:
    return ImageRequest("p1", text, negative, 8, 0, 0, None, None, None, 16, 16)


def drawn(folder: Path, options: str, request: ImageRequest) -> Picture:
    (reply,) = BACKENDS.make(f"diffusers:{folder}?device=cpu&{options}").generate([request])
    assert isinstance(reply, Picture), reply
    return reply


@pytest.mark.parametrize("kind", ["flux2", "flux2-klein-base", "hunyuan", "hunyuan-distilled", "sana", "z-image"])
def test_guidance_is_heeded_and_recorded(folders: Folders, kind: str) -> None:
    little, much = (drawn(folders(kind), f"steps=2&guidance={strength}", asked()) for strength in (1.5, 9))
    assert (little.provider_params["guidance"], much.provider_params["guidance"]) == (1.5, 9.0)
    assert not np.array_equal(little.pixels, much.pixels)


@pytest.mark.parametrize("kind", ["flux2-klein", "qwen"])
def test_guidance_that_a_pipeline_leaves_out_is_refused(folders: Folders, kind: str) -> None:
    with pytest.raises(UsageError, match="not trained to be told guidance_scale"):
        drawn(folders(kind), "steps=1&guidance=3", asked())
    assert drawn(folders(kind), "steps=1", asked()).provider_params["guidance"] is None


@pytest.mark.parametrize(
    ("kind", "options"), [("hunyuan", "guidance=3"), ("z-image", "guidance=0.5"), ("sana", "guidance=3")]
)
def test_a_negative_prompt_is_sent_where_it_has_an_effect(folders: Folders, kind: str, options: str) -> None:
    without, sent = (drawn(folders(kind), f"steps=2&{options}", asked(negative=text)) for text in (None, "fog"))
    assert sent.provider_params["negative_prompt"] == "fog"
    assert not np.array_equal(without.pixels, sent.pixels)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("flux2", "guidance=4", "Flux2Pipeline has no negative prompts"),
        ("hunyuan-distilled", "guidance=3", "only with a guider at work"),
        ("hunyuan", "guidance=1", "only with a guider at work"),
        ("z-image", "guidance=0", "only with guidance above 0"),
    ],
)
def test_a_negative_prompt_without_effect_is_said(folders: Folders, kind: str, options: str, words: str) -> None:
    without, told = (drawn(folders(kind), f"steps=1&{options}", asked(negative=text)) for text in (None, "fog"))
    assert words in str(told.provider_params["findings"])
    assert np.array_equal(without.pixels, told.pixels)


def test_what_a_conversation_adds_counts_against_the_tokens_that_are_read(folders: Folders) -> None:
    words = len("user\n\nassistant\n") + 3  # around the 20 letters, with the signs between turns
    whole, cut = (
        drawn(folders("z-image"), f"steps=1&tokens={20 + words - less}", asked("x" * 20)).provider_params
        for less in (0, 1)
    )
    assert "prompt_cut" not in whole
    assert cut["prompt_cut"] == {"tokenizer": [20 + words, 19 + words]}
    long = drawn(folders("flux2"), "steps=1", asked("y" * 400)).provider_params
    system = str(diffusers.Flux2Pipeline(**dict.fromkeys(PARTS)).system_message)
    assert long["prompt_cut"]["tokenizer"][0] > 400 + len(system)  # type: ignore[index]


PARTS = ("scheduler", "vae", "text_encoder", "tokenizer", "transformer")


def test_lanes_have_guiders_of_their_own(folders: Folders) -> None:
    backend: Any = BACKENDS.make(f"diffusers:{folders('hunyuan')}?steps=1&device=cpu&guidance=5")
    with backend.lanes(3) as lanes:
        guiders = [lane.call.loaded.base.guider for lane in lanes]
        assert len({id(guider) for guider in guiders}) == 3
        assert {guider.guidance_scale for guider in guiders} == {5.0}


@pytest.mark.parametrize(
    "kind", ["flux2", "flux2-klein", "hunyuan", "hunyuan-distilled", "qwen", "sana", "sd3", "sdxl", "z-image"]
)
def test_a_run_that_stopped_goes_on_with_the_same_pictures(
    folders: Folders, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, generate, calls = prompts_of(tmp_path, 3), DiffusersLane.generate, list[int]()

    def run(out: str, stops_at: int) -> int:
        def counted(lane: DiffusersLane, requests: list[ImageRequest]) -> list[ImageReply]:
            calls.append(len(requests))
            if len(calls) == stops_at:
                raise KeyboardInterrupt
            return generate(lane, requests)

        calls.clear()
        monkeypatch.setattr(DiffusersLane, "generate", counted)
        spec = f"diffusers:{folders(kind)}?steps=1&device=cpu"
        arguments = ["generate", "--backend", spec, "--prompts", prompts, "--out", tmp_path / out, "--size", "16x16"]
        return CliRunner().invoke(app, [*map(str, arguments), "--workers", "1"]).exit_code

    assert run("whole", stops_at=0) == 0
    assert run("cut", stops_at=2) != 0
    assert run("cut", stops_at=0) == 0
    assert len(calls) == 2, "the first picture was kept"
    whole, cut = (pl.read_parquet(tmp_path / out / "images.parquet") for out in ("whole", "cut"))
    assert whole.equals(cut)
    assert whole["status"].to_list() == ["ok"] * 3


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
        subprocess.run(
            [sys.executable, "-c", NO_TORCHVISION, folders(kind)], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ).stdout
        for kind in ("flux2", "sdxl")
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


def test_adapters_come_from_the_hub_by_their_id(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peft: Any = pytest.importorskip("peft")
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folders("sdxl"), use_safetensors=True)
    pipeline.unet.add_adapter(peft.LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False))
    layers = peft.get_peft_model_state_dict(pipeline.unet)
    diffusers.StableDiffusionXLPipeline.save_lora_weights(tmp_path / "lora", unet_lora_layers=layers)
    content = (tmp_path / "lora/pytorch_lora_weights.safetensors").read_bytes()
    home = tmp_path / "hub"
    commit = hub_of(
        home, "owner/usual", {"pytorch_lora_weights.safetensors": content, "more.safetensors": b""}, monkeypatch
    )
    hub_of(home, "owner/many", {"a.safetensors": content, "steps/b.safetensors": content}, monkeypatch)
    local = drawn(folders("sdxl"), f"steps=1&lora={tmp_path / 'lora'}", asked())
    for target in ("owner/usual", f"owner/usual&lora_revision={commit}", "owner/many/steps/b.safetensors"):
        hers = drawn(folders("sdxl"), f"steps=1&lora={target}", asked())
        assert np.array_equal(hers.pixels, local.pixels), target
        notes: Any = hers.provider_params["lora"]
        assert [note["sha256"] for note in notes] == [digest_bytes(content)]
    assert not np.array_equal(drawn(folders("sdxl"), "steps=1", asked()).pixels, local.pixels)
    with pytest.raises(UsageError, match="no safetensors in the local cache"):
        drawn(folders("sdxl"), "steps=1&lora=owner/none", asked())
    with pytest.raises(UsageError, match="only a hub id has revisions"):
        drawn(folders("sdxl"), f"steps=1&lora={tmp_path / 'lora'}&lora_revision=main", asked())
