"""LoRA on the denoiser of a pipeline, or all of it: steps that follow from the seed and their number, and checkpoints.

A step draws its pairs, noise and times anew from the seed and its number, so a checkpoint needs the weights and the
optimiser's state and no generator; a training that goes on writes the file that an uncut one writes.
"""

import importlib
import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.model_files import check_safetensors
from culturekit.core.schemas import TRAINING
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_table
from culturekit.core.torch_places import chosen_device, chosen_dtype, mend_torchvision
from culturekit.generation.diffusion.diffusers_backend import kept_threads
from culturekit.generation.diffusion.diffusers_calls import TextReaders, loaded, quietly
from culturekit.generation.diffusion.diffusers_folder import Options, PipelineFolder
from culturekit.generation.diffusion.training import DENOISER, TUNED, TrainingPair, TuningOptions, shown_square

_RECORD, _STEP = "told.json", "step.txt"
_LONGEST_GRADIENT = 1.0
_PROBES = 8  # batches whose loss is measured again and again with the same noise: that of a step is mostly its noise


class LoraTraining:
    """A pipeline with an adapter that learns."""

    def __init__(
        self,
        folder: PipelineFolder,
        pairs: Sequence[TrainingPair],
        options: TuningOptions,
        shared: Any = None,  # noqa: ANN401 - an Accelerator
    ) -> None:
        """Load the pipeline, and put an adapter on it that changes nothing yet; `shared` joins several processes."""
        stated = options.spec.read(Options)
        diffusers, peft = importlib.import_module("diffusers"), importlib.import_module("peft")
        importlib.import_module("diffusers.training_utils")
        self.pairs, self.options, self.shared = pairs, options, shared
        self.device = chosen_device(stated.device) if shared is None else shared.device
        self.rank = 0 if shared is None else int(shared.process_index)
        self.dtype = chosen_dtype(stated.dtype, self.device)
        with quietly():
            self.pipeline = loaded(folder, self.dtype)
            self.pipeline.to(self.device)
            self.pipeline.vae.to(torch.float32)  # half precision overflows in that of SDXL
        self.noising = diffusers.DDPMScheduler.from_config(self.pipeline.scheduler.config)
        self.unet = self.pipeline.unet
        for part in self.pipeline.components.values():
            if isinstance(part, torch.nn.Module):
                part.requires_grad_(False)
        if options.learns == "full":
            self.unet.requires_grad_(True)
            diffusers.training_utils.cast_training_params(self.unet)
        else:
            self.unet.add_adapter(peft.LoraConfig(r=options.rank, lora_alpha=options.rank, target_modules=list(TUNED)))
        if options.recompute:
            self.unet.enable_gradient_checkpointing()
        self.unet.train()
        self.learned = {name: one for name, one in sorted(self.unet.named_parameters()) if one.requires_grad}
        if options.learns == "lora":
            self.begin()
        self.denoise = self.unet if shared is None else shared.prepare(self.unet)  # gradients are averaged over all
        self.optimiser = torch.optim.AdamW(self.learned.values(), lr=options.rate)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.curve: list[tuple[float, float, float]] = []

    def begin(self) -> None:
        """Draw the first half of the adapter, and leave the second at zero: the pipeline draws as before."""
        random = self.generator("begin", 0)
        for name, one in self.learned.items():
            one.data = torch.zeros(one.shape, device=self.device)
            if "lora_A" in name:
                one.data += torch.randn(one.shape, generator=random).to(self.device) / self.options.rank

    def seeds(self, what: str, number: int) -> list[int]:
        """Give what the draws of a step follow from."""
        kind = ("begin", "order", "step", "probe").index(what)
        return [int(one) for one in np.random.SeedSequence([self.options.seed, kind, number]).generate_state(4)]

    def generator(self, what: str, number: int) -> torch.Generator:
        """Make a generator of torch for a step."""
        return torch.Generator("cpu").manual_seed(self.seeds(what, number)[0])

    def batch(self, number: int) -> list[TrainingPair]:
        """Choose the pairs of a batch: every pass over all has an order of its own."""
        size, count = self.options.batch, len(self.pairs)
        places = range(number * size, (number + 1) * size)
        orders = {turn: np.random.default_rng(self.seeds("order", turn)).permutation(count)
                  for turn in {index // count for index in places}}  # fmt: skip
        return [self.pairs[orders[index // count][index % count]] for index in places]

    def loss(self, pairs: Sequence[TrainingPair], random: torch.Generator) -> torch.Tensor:
        """Say how far the noise that the denoiser finds is from the noise that was added."""
        shown = [shown_square(pair, self.options.size) for pair in pairs]
        with torch.no_grad():
            pixels = torch.from_numpy(np.stack([one.numbers for one in shown])).to(self.device)
            vae = self.pipeline.vae
            latents = vae.encode(pixels).latent_dist.sample(random) * vae.config.scaling_factor
            texts, *others = self.pipeline.encode_prompt(
                prompt=[pair.text for pair in pairs], device=self.device, num_images_per_prompt=1,
                do_classifier_free_guidance=False,
            )  # fmt: skip
            conditions: Mapping[str, Any] | None = None
            if len(others) > 1:  # of SDXL, which is told sizes and corners too
                sizes = [[*one.size, *one.corner, self.options.size, self.options.size] for one in shown]
                conditions = {
                    "text_embeds": others[1],
                    "time_ids": torch.tensor(sizes, device=self.device, dtype=torch.float32),
                }
            noise = torch.randn(latents.shape, generator=random).to(self.device)
            times = torch.randint(0, self.noising.config.num_train_timesteps, (len(pairs),), generator=random)
            times = times.to(self.device)
            noisy = self.noising.add_noise(latents, noise, times)
            kind = self.noising.config.prediction_type
            wanted = noise if kind == "epsilon" else latents
            if kind == "v_prediction":
                wanted = self.noising.get_velocity(latents, noise, times)
        half = self.dtype != torch.float32
        with torch.autocast(self.device.type, dtype=self.dtype) if half else nullcontext():
            found = self.denoise(noisy, times, encoder_hidden_states=texts, added_cond_kwargs=conditions).sample
        return torch.nn.functional.mse_loss(found.float(), wanted.float())

    def step(self, number: int) -> None:
        """Learn from the batches of a step."""
        parts, many, total = self.options.accumulate, self.options.processes, 0.0
        random = self.generator("step", number * many + self.rank)
        for part in range(parts):
            loss = self.loss(self.batch(((number - 1) * parts + part) * many + self.rank), random) / parts
            self.scaler.scale(loss).backward()
            total += loss.item() if self.shared is None else self.shared.reduce(loss.detach(), "mean").item()
        self.scaler.unscale_(self.optimiser)
        gradient = torch.nn.utils.clip_grad_norm_(self.learned.values(), _LONGEST_GRADIENT).item()
        if not np.isfinite(total):
            raise CultureKitError(f"the training came apart in step {number}: its loss is no number", found=str(total),
                                  hint="Choose a lower --rate, or dtype=bfloat16 or float32.")  # fmt: skip
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        self.curve.append((total, gradient, np.nan))

    def probe(self) -> float:
        """Measure the loss on the same pairs with the same noise as before."""
        with torch.no_grad():
            losses = [self.loss(self.batch(n), self.generator("probe", n)).item() for n in range(_PROBES)]
        return float(np.mean(losses))

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        state = self.optimiser.state_dict()["state"]
        tensors = {f"weight/{name}": one.data for name, one in self.learned.items()}
        tensors |= {f"adam/{number}/{name}": one for number, values in state.items() for name, one in values.items()}
        tensors |= {f"scaler/{name}": torch.tensor(float(one)) for name, one in self.scaler.state_dict().items()}
        tensors["curve"] = torch.tensor(self.curve, dtype=torch.float64)
        write_atomically(path, importlib.import_module("safetensors.torch").save(tensors))

    def go_on(self, path: Path) -> int:
        """Take up a checkpoint; say how many steps are done."""
        check_safetensors([path])
        tensors = importlib.import_module("safetensors.torch").load_file(path, device=str(self.device))
        state: dict[int, dict[str, torch.Tensor]] = {}
        scaler = {}
        for key, one in tensors.items():
            kind, _, name = key.partition("/")
            if kind == "weight":
                self.learned[name].data.copy_(one)
            elif kind == "adam":
                number, _, inner = name.partition("/")
                state.setdefault(int(number), {})[inner] = one.cpu() if inner == "step" else one
            elif kind == "scaler":
                scaler[name] = int(one) if name in {"growth_interval", "_growth_tracker"} else one.item()
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.scaler.load_state_dict(scaler)
        self.curve = [tuple(row) for row in tensors["curve"].cpu().tolist()]
        return len(self.curve) - 1

    def write(self, out: Path) -> None:
        """Write the adapter under the names that diffusers and others know, or the denoiser as diffusers keeps it."""
        if self.options.learns == "full":
            self.unet.save_pretrained(out / DENOISER, safe_serialization=True)
            return
        peft, convert = importlib.import_module("peft"), importlib.import_module("diffusers.utils.state_dict_utils")
        layers = convert.convert_state_dict_to_diffusers(peft.get_peft_model_state_dict(self.unet))
        self.pipeline.save_lora_weights(out, unet_lora_layers=layers)


def train(work: Work, folder: PipelineFolder, pairs: Sequence[TrainingPair], options: TuningOptions) -> Outcome:
    """Train; what a kill cuts goes on from its last checkpoint."""
    steps = options.steps_over(len(pairs))
    work.progress.begin(steps, "steps")
    if options.processes == 1:
        done = 0
        for number, loss in _trained(folder, pairs, options, work.scratch, work.out):
            work.progress.advance(number - done)
            work.progress.tell(f"loss {loss:.4f}")
            done = number
    else:
        _train_together(work, folder, pairs, options)
    record = json.loads((work.scratch / _RECORD).read_bytes())
    return Outcome({"steps": steps, "pairs": len(pairs), **record["counts"]}, notes=record["notes"])


def _trained(
    folder: PipelineFolder,
    pairs: Sequence[TrainingPair],
    options: TuningOptions,
    scratch: Path,
    out: Path,
    shared: Any = None,  # noqa: ANN401 - an Accelerator
) -> Iterator[tuple[int, float]]:
    """Train in this process, and say after each step its number and loss; of several the first one writes."""
    checkpoint, steps = scratch / "checkpoint.safetensors", options.steps_over(len(pairs))
    with kept_threads(), _unless_full():
        training = _begun(folder, pairs, options, shared)
        if checkpoint.exists():
            yield training.go_on(checkpoint), training.curve[-1][0]
        else:
            training.curve = [(np.nan, np.nan, training.probe())]
        for number in range(len(training.curve), steps + 1):
            training.step(number)
            if number % options.every == 0 or number == steps:
                training.curve[-1] = (*training.curve[-1][:2], training.probe())
                if training.rank == 0:
                    training.save(checkpoint)
            yield number, training.curve[-1][0]
    if training.rank == 0:
        _finish(training, scratch, out)


def _finish(training: LoraTraining, scratch: Path, out: Path) -> None:
    """Write what was learnt, its curve, and what the manifest is to say of it."""
    training.write(out)
    curve = pl.DataFrame(training.curve, schema=["loss", "gradient", "probe"], orient="row").fill_nan(None)
    write_table(out, TRAINING, curve.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("step"), pl.all()))
    readers = TextReaders(training.pipeline, 0)
    cut = sum(bool(readers.cut(pair.text)) for pair in training.pairs)
    counts = {"captions cut by the text encoder": cut,
              "learned numbers": sum(one.numel() for one in training.learned.values())}  # fmt: skip
    probes = {"before": training.curve[0][2], "after": training.curve[-1][2]}
    record = {"device": training.device.type, "dtype": str(training.dtype).removeprefix("torch."), "loss": probes}
    write_atomically(scratch / _RECORD, json.dumps({"counts": counts, "notes": record}).encode())


# Several processes, one a GPU, each with the whole denoiser and a batch of its own: accelerate joins them.


def _train_together(work: Work, folder: PipelineFolder, pairs: Sequence[TrainingPair], options: TuningOptions) -> None:
    """Train in processes of their own, and follow the first one's steps."""
    accelerate = importlib.import_module("accelerate.utils")
    many, on_cpu = options.processes, chosen_device(options.spec.read(Options).device).type == "cpu"
    there = many if on_cpu else torch.cuda.device_count()
    if there < many:
        raise UsageError("there are fewer GPUs than processes", expected=f"{many} GPUs", found=str(there),
                         hint="Choose fewer --processes.")  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launched = accelerate.PrepareForLaunch(_one_of_many, "MULTI_CPU" if on_cpu else "MULTI_GPU")
    known = {"nproc": many, "node_rank": 0, "world_size": many, "master_addr": "127.0.0.1", "master_port": port,
             "accelerate_use_cpu": "yes" if on_cpu else "no"}  # fmt: skip
    given, done = (folder, list(pairs), options, work.scratch, work.out, on_cpu), 0
    with accelerate.patch_environment(**known):
        processes = torch.multiprocessing.start_processes(
            launched, args=given, nprocs=many, join=False, start_method="spawn"
        )
        while not processes.join(timeout=0.5):
            with suppress(OSError, ValueError):  # how far the first process is
                number, loss = (work.scratch / _STEP).read_text(encoding="ascii").split()
                work.progress.advance(int(number) - done)
                work.progress.tell(f"loss {float(loss):.4f}")
                done = int(number)


def _one_of_many(
    folder: PipelineFolder,
    pairs: Sequence[TrainingPair],
    options: TuningOptions,
    scratch: Path,
    out: Path,
    on_cpu: bool,
) -> None:
    """Train as one of several processes."""
    mend_torchvision()
    shared = importlib.import_module("accelerate").Accelerator(cpu=on_cpu)
    for number, loss in _trained(folder, pairs, options, scratch, out, shared):
        if shared.is_main_process:
            write_atomically(scratch / _STEP, f"{number} {loss}".encode())
    shared.wait_for_everyone()
    shared.end_training()


def measure(folder: PipelineFolder, pairs: Sequence[TrainingPair], options: TuningOptions) -> tuple[float, int | None]:
    """Time the second of two steps, and ask the device for the most memory that they took."""
    with kept_threads(), _unless_full():
        training = _begun(folder, pairs, options)
        training.step(1)
        started = time.perf_counter()
        training.step(2)
        seconds = time.perf_counter() - started
        gpu = training.device.type == "cuda"
        return seconds, torch.cuda.max_memory_allocated(training.device) if gpu else None


def _begun(
    folder: PipelineFolder,
    pairs: Sequence[TrainingPair],
    options: TuningOptions,
    shared: Any = None,  # noqa: ANN401 - an Accelerator
) -> LoraTraining:
    """Begin a training; on a CPU one thread adds up, for more do so in another order each time."""
    training = LoraTraining(folder, pairs, options, shared)
    if training.device.type == "cpu":
        torch.set_num_threads(1)
    return training


@contextmanager
def _unless_full() -> Iterator[None]:
    """Say what to do where the memory of a device is full."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UsageError(
            "a batch is too much for the memory of the device", found=str(error).partition("\n")[0],
            hint="Choose a smaller --batch with more to --accumulate, --recompute, or a smaller --size.",
        ) from None  # fmt: skip
