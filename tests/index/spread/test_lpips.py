"""LPIPS held against torchmetrics' own with the same weights, and against sums written out for single pixels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.digests import digest_file
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import parse_spec
from culturekit.core.run import run_stage
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.raters.picture_spread import LpipsMeasure, make
from culturekit.index.weights import convert_weights
from culturekit.scores.inputs import ImageTables, PairFolders
from culturekit.scores.spread import SpreadOptions, pairs, spread
from tests.conftest import HeardProgress
from tests.index.spread.test_picture_spread import drawn

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

pytestmark = pytest.mark.usefixtures("one_torch_thread")

NETWORKS = ["alex", pytest.param("vgg", marks=pytest.mark.slow), pytest.param("squeeze", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def pictures() -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(3)
    plain = [rng.integers(0, 256, (64, 64, 3), np.uint8) for _ in range(3)]
    return [*plain, np.zeros((64, 64, 3), np.uint8), plain[0].copy()]


def peer(network: str) -> Any:
    """Torchmetrics' module with the heads that it ships and random layers below."""
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    lpips = pytest.importorskip("torchmetrics.functional.image.lpips")
    torch.manual_seed(1)
    return lpips._LPIPS(pretrained=True, net=network, pnet_rand=True)


def saved(module: Any, path: Path) -> Path:
    state = {name: tensor.contiguous().clone() for name, tensor in module.state_dict().items()}
    safetensors.save_file(state, path)
    return path


def measure(path: Path, options: str = "side=64") -> LpipsMeasure:
    return make(parse_spec(f"lpips:{path}?device=cpu&{options}"))


@pytest.mark.parametrize("network", NETWORKS)
def test_distances_are_those_of_torchmetrics(network: str, pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    module = peer(network)
    result = measure(saved(module, tmp_path / "lpips.safetensors"))
    assert result.name == f"lpips-{network}"
    found = result.distances([result.prepare(picture) for picture in pictures])
    ranged = [torch.from_numpy(picture.transpose(2, 0, 1).copy()).float()[None] / 127.5 - 1 for picture in pictures]
    with torch.inference_mode():
        wanted = np.array([[float(module(a, b)) for b in ranged] for a in ranged])
    off = ~np.eye(len(pictures), dtype=bool)
    assert wanted[0, 1] > 1e-3
    assert found[0, 4] == 0
    np.testing.assert_allclose(found[off], wanted[off], rtol=2e-4, atol=1e-6)
    np.testing.assert_array_equal(found, found.T)


def naive(result: LpipsMeasure, first: Any, second: Any) -> float:
    """Write the sum out: for each layer, the mean over places of the weighted squares of unit features apart."""
    total = 0.0
    both = [list(result.network.taken(torch.from_numpy(picture)[None])) for picture in (first, second)]
    for a, b, head in zip(*both, result.network.heads, strict=True):
        one, other, weights = (tensor.double().numpy()[0] for tensor in (a, b, head))
        height, width = one.shape[1:]
        for row in range(height):
            for column in range(width):
                x, y = one[:, row, column], other[:, row, column]
                x, y = x / (np.sqrt(x @ x) + 1e-10), y / (np.sqrt(y @ y) + 1e-10)
                total += float(weights[:, 0, 0] @ (x - y) ** 2) / (height * width)
    return total


def tiny_alexnet(path: Path, *, seed: int = 0, heads: bool = True, layers: bool = True, prefix: str = "net") -> Path:
    """An AlexNet of the real widths with random numbers, and random heads."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {0: (64, 3, 11, 11), 3: (192, 64, 5, 5), 6: (384, 192, 3, 3), 8: (256, 384, 3, 3), 10: (256, 256, 3, 3)}
    state: dict[str, Any] = {}
    for index, (number, shape) in enumerate(shapes.items()):
        name = f"net.slice{index + 1}.{number}" if prefix == "net" else f"features.{number}"
        scale = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        if layers:
            state[f"{name}.weight"] = torch.randn(shape, generator=generator) * scale
            state[f"{name}.bias"] = torch.randn(shape[0], generator=generator) * 0.01
        if heads:
            state[f"lin{index}.model.1.weight"] = torch.rand((1, shape[0], 1, 1), generator=generator)
    safetensors.save_file(state, path)
    return path


def test_distances_are_the_sums_that_the_paper_writes(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    result = measure(tiny_alexnet(tmp_path / "alex.safetensors"))
    ready = [result.prepare(picture) for picture in pictures[:3]]
    found = result.distances(ready)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert found[i, j] == pytest.approx(naive(result, ready[i], ready[j]), rel=1e-5)


def test_heads_and_network_may_lie_in_two_files(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    whole = measure(tiny_alexnet(tmp_path / "whole.safetensors"))
    heads = tiny_alexnet(tmp_path / "heads.safetensors", layers=False)
    other = tiny_alexnet(tmp_path / "alexnet.safetensors", prefix="features")
    state = {name: tensor for name, tensor in safetensors.load_file(other).items() if name.startswith("features")}
    safetensors.save_file(state, other)
    with pytest.raises(UsageError, match="heads of LPIPS alone"):
        measure(heads)
    # Random heads and layers are drawn alternately: only the kind of the files, not their numbers, is alike.
    parted = measure(heads, f"side=64&backbone={other}")
    ready = [whole.prepare(picture) for picture in pictures[:2]]
    assert parted.distances(ready)[0, 1] == pytest.approx(naive(parted, *ready), rel=1e-5)
    assert parted.parameters["weights"] != whole.parameters["weights"]


def test_pictures_are_resized_unless_told_not_to(tmp_path: Path) -> None:
    path = tiny_alexnet(tmp_path / "alex.safetensors")
    wide, small = np.zeros((64, 96, 3), np.uint8), np.zeros((16, 16, 3), np.uint8)
    result = measure(path, "side=64")
    assert {result.prepare(picture).shape for picture in (wide, small)} == {(3, 64, 64)}
    plain = measure(path, "side=0")
    assert plain.prepare(wide).shape == (3, 64, 96)
    with pytest.raises(UsageError, match="too small"):
        plain.prepare(small)
    with pytest.raises(UsageError, match="several sizes"):
        plain.distances([plain.prepare(wide), plain.prepare(np.zeros((64, 64, 3), np.uint8))])
    assert result.parameters["preprocessing"] != plain.parameters["preprocessing"]


def test_what_is_not_lpips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a file of weights; expected lpips:FILE"):
        make(parse_spec("lpips"))
    with pytest.raises(UsageError, match="no such file"):
        make(parse_spec("lpips:nowhere.safetensors"))
    pickled = tmp_path / "alex.pth"
    torch.save({}, pickled)
    with pytest.raises(UsageError, match="not safetensors"):
        make(parse_spec(f"lpips:{pickled}"))
    path = tmp_path / "other.safetensors"
    safetensors.save_file({"weight": torch.zeros(2, 2)}, path)
    with pytest.raises(IntegrityError, match="not those of LPIPS"):
        make(parse_spec(f"lpips:{path}"))
    whole = safetensors.load_file(tiny_alexnet(tmp_path / "whole.safetensors"))
    del whole["net.slice3.6.bias"]
    safetensors.save_file(whole, tmp_path / "cut.safetensors")
    with pytest.raises(IntegrityError, match="not complete"):
        make(parse_spec(f"lpips:{tmp_path / 'cut.safetensors'}"))
    with pytest.raises(UsageError, match="at least 32"):
        make(parse_spec(f"lpips:{tmp_path / 'whole.safetensors'}?side=8"))


def test_the_stage_gives_the_same_bytes_for_any_number_of_workers(tmp_path: Path) -> None:
    weights = tiny_alexnet(tmp_path / "alex.safetensors")
    images = drawn(tmp_path / "images", 18, slots=2)
    tables = {}
    for workers in (1, 3):
        stage = pairs.stage(images, measure=f"lpips:{weights}?side=32&device=cpu", size=2)
        with LocalEngine(workers) as engine:
            run_stage(stage, tmp_path / f"pairs-{workers}", engine=engine, progress=HeardProgress())
        tables[workers] = (tmp_path / f"pairs-{workers}/pair_distances.parquet").read_bytes()
    assert tables[1] == tables[3]
    distances = PairFolders([tmp_path / "pairs-1"])
    answer = spread.stage(ImageTables([images]), distances=distances, options=SpreadOptions(size=2))
    with LocalEngine(1) as engine:
        run_stage(answer, tmp_path / "scores", engine=engine, progress=HeardProgress())
    row = pl.read_parquet(tmp_path / "scores/scores.parquet").row(0, named=True)
    assert (row["metric"], row["n"]) == ("mean_lpips", 36)
    data = json.loads(row["params"])["measure"]
    assert data["name"] == "lpips-alex"
    assert "BSD" in data["licence"]
    assert data["weights"] == digest_file(weights)


@pytest.mark.slow
def test_published_heads_and_a_network_of_torchvision_are_converted(tmp_path: Path) -> None:
    lpips = pytest.importorskip("torchmetrics.functional.image.lpips")
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    heads = Path(lpips.__file__).parent / "lpips_models/alex.pth"
    torch.manual_seed(1)
    module = peer("alex")
    layers = {f"features.{name.split('.', 1)[1]}": tensor for name, tensor in module.net.state_dict().items()}
    torch.save({**layers, "classifier.1.weight": torch.zeros(2, 2)}, tmp_path / "alexnet.pth")
    for source, kind in ((heads, "lpips"), (tmp_path / "alexnet.pth", "lpips-backbone")):
        out = tmp_path / f"{kind}.safetensors"
        converted = convert_weights(source, sha256=digest_file(source), out=out)
        assert (converted.kind, converted.variant) == (kind, "AlexNet")
    parted = measure(tmp_path / "lpips.safetensors", f"side=64&backbone={tmp_path / 'lpips-backbone.safetensors'}")
    rng = np.random.default_rng(5)
    ready = [parted.prepare(rng.integers(0, 256, (64, 64, 3), np.uint8)) for _ in range(2)]
    with torch.inference_mode():
        wanted = float(module(*(torch.from_numpy(one)[None] for one in ready)))
    assert parted.distances(ready)[0, 1] == pytest.approx(wanted, rel=2e-4)
