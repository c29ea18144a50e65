"""Devices, number types, and batches that are halved when they do not fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.registry import Entry, Spec
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package
from culturekit.index.embedding.embedding import embed
from culturekit.index.encoder import ENCODERS, EncoderIdentity, Prepared, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, usual_batch
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress
from tests.index.embedding.test_embedding import Workers

torch = pytest.importorskip("torch")


def test_a_device_is_one_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert str(chosen_device("auto")) == str(chosen_device("cpu")) == "cpu"
    for absent in ("cuda", "cuda:0", "mps", "gpu", "", "cuda:x"):
        with pytest.raises(UsageError, match="expected auto or cpu"):
            chosen_device(absent)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert str(chosen_device("auto")) == str(chosen_device("cuda")) == "cuda:0"
    assert str(chosen_device("cuda:1")) == "cuda:1"
    with pytest.raises(UsageError, match="auto or cpu or cuda:0 or cuda:1, found device=cuda:2"):
        chosen_device("cuda:2")


def test_numbers_are_whole_on_a_cpu_and_short_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda:0")
    assert chosen_dtype("auto", cpu) == torch.float32
    assert chosen_dtype("bfloat16", cpu) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert chosen_dtype("auto", gpu) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert chosen_dtype("auto", gpu) == torch.float16
    assert chosen_dtype("float32", gpu) == torch.float32
    assert usual_batch(TorchOptions(), cpu) < usual_batch(TorchOptions(), gpu)
    assert usual_batch(TorchOptions(batch=7), gpu) == 7


def test_a_package_that_is_not_there_is_named_with_the_command() -> None:
    with pytest.raises(MissingDependency, match=r"no_such_thing.*pip install -c constraints.txt 'culturekit\[embed\]'"):
        needed_package("no_such_thing", kind="encoder x", extra="embed")


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 40))
def test_every_item_is_encoded_once_in_order_whatever_fits(count: int, size: int, fits: int) -> None:
    seen: list[int] = []

    def encode(batch: Sequence[int]) -> Vectors:
        assert not torch.is_grad_enabled()
        seen.append(len(batch))
        if len(batch) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return np.array([[item, 1] for item in batch], np.float32)

    batches = Batches(size)
    vectors = batches.run(encode, list(range(count)), dim=2)
    assert vectors[:, 0].tolist() == list(range(count))
    assert batches.size <= fits or batches.size == size
    assert set(seen) <= {max(1, size >> halved) for halved in range(5)}, "batches are full or halved, never partial"
    assert torch.is_grad_enabled()


def test_what_never_fits_is_said() -> None:
    def encode(batch: Sequence[int]) -> Vectors:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB\nmore")

    with pytest.raises(UsageError, match=r"one picture or text at a time.*9 GiB\. Choose a smaller model"):
        Batches(4).run(encode, [1], dim=2)


SIDE, DIM = 48, 16


class SmallNetwork:
    """A network whose sums are long enough to be parted among threads; it notes how many each batch had."""

    caveat = ""
    batch_size = 8
    identity = EncoderIdentity("small", "drawn", "1", "whole", "float32", DIM)

    def __init__(self) -> None:
        torch.manual_seed(0)
        wide = SIDE * SIDE * 3
        self.network = torch.nn.Sequential(
            torch.nn.Linear(wide, 256), torch.nn.GELU(), torch.nn.Linear(256, DIM)
        ).eval()
        self.threads: list[int] = []

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        return picture

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        self.threads.append(torch.get_num_threads())
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(pictures)).float().flatten(1) / 255
            vectors: Vectors = torch.nn.functional.normalize(self.network(pixels)).numpy()
        return vectors

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        return self.encode_prepared([self.prepare(picture) for picture in pictures])


NETWORK = SmallNetwork()


def make(spec: Spec) -> SmallNetwork:
    spec.refuse_options()
    return NETWORK


def test_vectors_of_a_network_do_not_depend_on_workers_or_torchs_threads(tmp_path: Path) -> None:
    ENCODERS.entries["small"] = Entry("small", f"{__name__}:make", "for tests")
    folder = tmp_path / "images"
    rows: list[Mapping[str, object]] = [
        image_row(folder, save_picture(folder / f"{number}.png", seed=number, size=(SIDE, SIDE)).name)
        for number in range(50)
    ]
    images = read_table(images_table(folder, rows), IMAGES)
    before = torch.get_num_threads()
    answers = []
    try:
        for workers, threads in ((1, 1), (2, 3), (4, 2)):
            torch.set_num_threads(threads)
            scratch = tmp_path / f"{workers}"
            scratch.mkdir()
            answer = embed(images, folder, "small", scratch, engine=Workers(workers), progress=HeardProgress())
            answers.append(np.array(answer.vectors))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert set(NETWORK.threads) == {1}
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
