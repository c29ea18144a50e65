"""LoRA of tiny pipelines: it learns, loads, repeats itself bit by bit, and goes on after a kill."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.run import StageRun
from culturekit.core.schemas import IMAGES, TRAINING
from culturekit.core.stage import Quiet
from culturekit.core.tables import read_table
from culturekit.core.torch_places import mend_torchvision
from culturekit.generation.backend import BACKENDS, ImageRequest, Picture
from culturekit.generation.diffusion.training import (
    TuningOptions,
    finetune_stage,
    pairs_in,
    pilot_of,
    pipeline_of,
    plan_tuning,
    shown_square,
)
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from tests.builders.captions.pair_worlds import done, images_of
from tests.conftest import HereEngine
from tests.faults.kill_and_resume import kill_and_resume
from tests.generation.diffusion.tiny_pipelines import prompts_of, tiny

torch: Any = pytest.importorskip("torch")
mend_torchvision()
pytest.importorskip("diffusers")
pytest.importorskip("peft")

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # fmt: skip

SIDE = 16


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipelines")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    images_of(folder, ["a", "b", "c"], side=20)
    lines = [{"file_name": f"picture-{n}.png", "text": f"a colour called {n}"} for n in range(3)]
    (folder / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def options(folders: Path, kind: str = "sd", **given: Any) -> TuningOptions:
    stated = {"steps": 6, "rank": 2, "rate": 1e-2, "batch": 2, "size": SIDE, "every": 3, **given}
    return TuningOptions(f"diffusers:{tiny(folders, kind)}?device=cpu", **stated)


def tuned(pairs: Path, out: Path, given: TuningOptions) -> StageRun:
    return done(finetune_stage(pairs, given), out)


def drawn(model: Path, lora: Path | None) -> Any:
    adapter = "" if lora is None else f"&lora={lora}"
    request = ImageRequest("p", "a colour called 1", None, 7, 0, 0, None, None, None, SIDE, SIDE)
    (reply,) = BACKENDS.make(f"diffusers:{model}?steps=2&device=cpu{adapter}").generate([request])
    assert isinstance(reply, Picture)
    return reply


def of_velocity(folders: Path) -> Path:
    """Save the tiny pipeline once more, as one that was trained to find velocities."""
    path = folders / "sd-v"
    if not path.is_dir():
        shutil.copytree(tiny(folders, "sd"), path)
        config = path / "scheduler/scheduler_config.json"
        config.write_text(config.read_text().replace('"epsilon"', '"v_prediction"'))
        assert "v_prediction" in config.read_text()
    return path


@pytest.mark.parametrize("kind", ["sd", "sdxl", "sd-v"])
def test_the_loss_falls_and_the_weights_load(folders: Path, pairs: Path, tmp_path: Path, kind: str) -> None:
    of_velocity(folders)
    given = options(folders, kind, steps=40, every=20)
    run, plan = tuned(pairs, tmp_path / "tuned", given), plan_tuning(given, 3)
    assert (plan.passes, plan.seconds, plan.learned) == (80 / 3, None, run.manifest.counts["learned numbers"])
    curve = read_table(run.folder / "training.parquet", TRAINING)
    assert curve["step"].to_list() == list(range(41))
    probes = curve["probe"].drop_nulls().to_list()
    assert len(probes) == 3
    assert probes[2] < probes[1] < probes[0], "the same pairs with the same noise"
    assert run.manifest.notes["loss"] == {"before": probes[0], "after": probes[2]}
    assert run.manifest.counts["steps"] == 40
    before, after = drawn(folders / kind, None), drawn(folders / kind, run.folder)
    assert np.abs(before.pixels.astype(int) - after.pixels.astype(int)).max() > 0
    assert after.provider_params["lora"][0]["sha256"] == digest_file(run.folder / "pytorch_lora_weights.safetensors")


def test_a_stage_of_images_waits_for_the_adapter_of_a_stage(folders: Path, pairs: Path, tmp_path: Path) -> None:
    given = options(folders, steps=2)
    prompts = prompts_of(tmp_path, 2)
    plan, backend = ImagePlan(size="16x16"), f"{given.model}&steps=2"
    stage = generate_stage(prompts, plan, backend=backend, model="after", seed=1, adapter=tmp_path / "tuned")
    trained = tuned(pairs, tmp_path / "tuned", given)
    images = read_table(done(stage, tmp_path / "images").folder / "images.parquet", IMAGES)
    sha256 = digest_file(trained.folder / "pytorch_lora_weights.safetensors")
    assert {json.loads(row)["lora"][0]["sha256"] for row in images["provider_params"]} == {sha256}
    named = generate_stage(prompts, plan, backend=f"{backend}&lora={trained.folder}", model="after", seed=1)
    again = read_table(done(named, tmp_path / "again").folder / "images.parquet", IMAGES)
    assert again["sha256"].equals(images["sha256"])
    with pytest.raises(UsageError, match="takes no adapter"):
        generate_stage(prompts, plan, backend="simulated", model="after", seed=1, adapter=tmp_path / "tuned")


def test_an_untrained_adapter_changes_nothing_and_a_loss_that_is_no_number_ends_all(folders: Path, pairs: Path) -> None:
    from culturekit.generation.diffusion.lora_training import LoraTraining

    given = options(folders)
    training = LoraTraining(pipeline_of(given), pairs_in(pairs), given)
    before = {name: one.clone() for name, one in training.unet.named_parameters()}
    assert all((one == 0).all() for name, one in training.learned.items() if "lora_B" in name)
    training.step(1)
    changed = {name for name, one in training.unet.named_parameters() if not torch.equal(one, before[name])}
    assert changed <= set(training.learned), "the pipeline is left alone"
    assert changed
    next(one for name, one in training.learned.items() if "lora_B" in name).data.fill_(np.inf)
    with pytest.raises(CultureKitError, match="came apart in step 2"):
        training.step(2)


def test_the_same_seed_gives_the_same_bytes_recomputed_or_not_and_another_others(
    folders: Path, pairs: Path, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    first = tuned(pairs, tmp_path / "one", options(folders))
    torch.manual_seed(2)
    assert tuned(pairs, tmp_path / "two", options(folders)).manifest.sha256 == first.manifest.sha256
    again = tuned(pairs, tmp_path / "again", options(folders, recompute=True))
    assert again.manifest.outputs == first.manifest.outputs
    assert tuned(pairs, tmp_path / "three", options(folders, seed=1)).manifest.sha256 != first.manifest.sha256


def test_batches_that_are_gathered_learn_as_one_batch(folders: Path, pairs: Path) -> None:
    """Three pairs at once or one by one see other noise, but the same pairs."""
    from culturekit.generation.diffusion.lora_training import LoraTraining

    whole, parts = options(folders, batch=3), options(folders, batch=1, accumulate=3)
    seen = [LoraTraining(pipeline_of(given), pairs_in(pairs), given) for given in (whole, parts)]
    orders = [[pair.file for pair in seen[0].batch(0)], [pair.file for n in range(3) for pair in seen[1].batch(n)]]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == [f"picture-{n}.png" for n in range(3)]


class Cut(Exception):
    """Stops a training in the middle."""


def test_a_cut_training_ends_alike(folders: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from culturekit.generation.diffusion.lora_training import LoraTraining

    whole = tuned(pairs, tmp_path / "whole", options(folders))
    step, taken = LoraTraining.step, []

    def cut(self: LoraTraining, number: int) -> None:
        if number == 5 and 5 not in taken:
            taken.append(number)
            raise Cut
        taken.append(number)
        step(self, number)

    monkeypatch.setattr(LoraTraining, "step", cut)
    with pytest.raises(Cut):
        tuned(pairs, tmp_path / "cut", options(folders))
    again = tuned(pairs, tmp_path / "cut", options(folders))
    assert taken == [1, 2, 3, 4, 5, 4, 5, 6]
    assert again.state == "resumed"
    assert again.manifest.sha256 == whole.manifest.sha256


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_learns_and_goes_on(folders: Path, pairs: Path, tmp_path: Path, dtype: str) -> None:
    from culturekit.generation.diffusion.lora_training import LoraTraining

    given = TuningOptions(f"{options(folders).model}&dtype={dtype}", rank=2, rate=1e-2, batch=2, size=SIDE)
    whole, early = (LoraTraining(pipeline_of(given), pairs_in(pairs), given) for _ in range(2))
    assert next(whole.unet.parameters()).dtype == getattr(torch, dtype)
    assert {one.dtype for one in whole.learned.values()} == {torch.float32}
    whole.curve = [(np.nan, np.nan, whole.probe())]
    for number in range(1, 13):
        whole.step(number)
        if number == 6:
            whole.save(tmp_path / "checkpoint")
    assert early.go_on(tmp_path / "checkpoint") == 6
    for number in range(7, 13):
        early.step(number)
    assert all(torch.equal(whole.learned[name], one) for name, one in early.learned.items())
    assert whole.probe() < whole.curve[0][2]


def test_a_pilot_times_a_step_and_changes_nothing(folders: Path, pairs: Path, tmp_path: Path) -> None:
    given = options(folders)
    out = tmp_path / "tuned"
    plan = pilot_of(pairs, given, out, engine=HereEngine(), progress=Quiet(), wait=False)
    assert plan.seconds is not None
    assert plan.seconds > 0
    after = tuned(pairs, out, given)
    assert after.manifest.sha256 == tuned(pairs, tmp_path / "alone", given).manifest.sha256


def test_a_square_is_the_middle_of_a_picture(tmp_path: Path, pairs: Path) -> None:
    shown = shown_square(pairs_in(pairs)[1], SIDE)
    assert shown.numbers.shape == (3, SIDE, SIDE)
    assert shown.size == (20, 20)
    np.testing.assert_allclose(shown.numbers[:, 3, 3], np.array([40, 90, 170]) / 127.5 - 1, atol=1e-6)


@pytest.mark.endtoend
def test_killed_trainings_end_in_the_same_files(folders: Path, pairs: Path, tmp_path: Path) -> None:
    words = [
        "finetune", "--pairs", pairs, "--model", options(folders).model, "--steps", 12, "--rank", 2, "--rate", 0.01,
        "--batch", 2, "--size", SIDE, "--every", 2, "--out",
    ]  # fmt: skip
    command = [sys.executable, "-m", "culturekit", *map(str, words)]
    assert kill_and_resume(lambda out: [*command, str(out)], tmp_path, kills=2, seed=3).different == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("dtype", ["auto", "float16", "float32"])
def test_a_gpu_learns_in_mixed_precision(folders: Path, pairs: Path, tmp_path: Path, dtype: str) -> None:
    model = f"diffusers:{tiny(folders, 'sdxl')}?device=cuda&dtype={dtype}"
    given = TuningOptions(model, steps=40, rank=2, rate=1e-2, batch=2, size=SIDE, every=20)
    notes = tuned(pairs, tmp_path / "tuned", given).manifest.notes
    assert notes["loss"]["after"] < notes["loss"]["before"]


def test_every_weight_learns_and_draws_as_a_denoiser(folders: Path, pairs: Path, tmp_path: Path) -> None:
    """One epoch of three pairs in batches of two is two steps; the loss falls with more of them."""
    brief = tuned(pairs, tmp_path / "brief", options(folders, learns="full", epochs=1, every=1))
    assert brief.manifest.counts["steps"] == 2
    given = options(folders, learns="full", steps=12, rate=1e-3)
    run = tuned(pairs, tmp_path / "full", given)
    loss = run.manifest.notes["loss"]
    assert loss["after"] < loss["before"]
    plan = plan_tuning(given, 3)
    assert run.manifest.counts["learned numbers"] == plan.learned
    again = tuned(pairs, tmp_path / "again", given)
    weights = "unet/diffusion_pytorch_model.safetensors"
    assert digest_file(run.folder / weights) == digest_file(again.folder / weights)
    stage = generate_stage(prompts_of(tmp_path, 2), ImagePlan(size="16x16"), backend=f"{given.model}&steps=2",
                           model="after", seed=1, adapter=run.folder)  # fmt: skip
    images = read_table(done(stage, tmp_path / "images").folder / "images.parquet", IMAGES)
    assert {json.loads(row)["unet"][-1]["sha256"] for row in images["provider_params"]} == {
        digest_file(run.folder / weights)
    }


@pytest.mark.slow
@pytest.mark.parametrize("learns", ["lora", "full"])
def test_processes_that_share_steps_write_one_training(folders: Path, pairs: Path, tmp_path: Path, learns: str) -> None:
    """Two processes with a batch of one each: the same bytes again, and a loss that falls."""
    pytest.importorskip("accelerate")
    given = options(folders, learns=learns, processes=2, batch=1, steps=12, rate=1e-2 if learns == "lora" else 1e-3)
    runs = [tuned(pairs, tmp_path / name, given) for name in ("one", "other")]
    files = [sorted(run.folder.rglob("*.safetensors")) for run in runs]
    assert [digest_file(path) for path in files[0]] == [digest_file(path) for path in files[1]]
    assert runs[0].manifest.notes["loss"]["after"] < runs[0].manifest.notes["loss"]["before"]
    assert read_table(runs[0].folder / "training.parquet", TRAINING).height == 13
