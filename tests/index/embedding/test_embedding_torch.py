from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from culturekit.core.registry import Entry, Spec
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.index.embedding.embedding import embed
from culturekit.index.encoder import ENCODERS, EncoderIdentity, Prepared, Vectors
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress
from tests.index.embedding.test_embedding import Workers

torch = pytest.importorskip("torch")

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
