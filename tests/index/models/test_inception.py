"""InceptionV3 held against torch-fidelity, where it is installed, and against torchvision's module."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import parse_spec
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.encoder import ImageEncoder

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from culturekit.index.models.inception_encoder import InceptionEncoder, make  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SIZES = [(64, 64), (299, 299), (400, 333), (30, 500), (1, 1)]


@pytest.fixture(scope="module")
def pictures() -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (*size, 3), np.uint8) for size in SIZES[::2]]


def state(*, ported: bool) -> dict[str, Any]:
    """Random weights that let a picture through to the features, with the names of torchvision."""
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    inception = pytest.importorskip("torchvision.models.inception")
    torch.manual_seed(0)
    network = inception.Inception3(num_classes=1008 if ported else 1000, aux_logits=False, init_weights=False)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    return dict(network.state_dict())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    folder = tmp_path_factory.mktemp("inception")
    made = {}
    for ported in (True, False):
        made[ported] = folder / f"{ported}.safetensors"
        safetensors.save_file(state(ported=ported), made[ported])
    return made


def encoder(file: Path, options: str = "") -> InceptionEncoder:
    made = make(parse_spec(f"inception:{file}?device=cpu&batch=3{options}"))
    assert isinstance(made, InceptionEncoder)
    return made


def close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert np.ptp(wanted, axis=0).max() > 0.01 * np.abs(wanted).max(), "pictures that differ give different rows"
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def test_both_are_torch_fidelitys(files: dict[bool, Path], pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    mend_torchvision()
    fidelity = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
    torch.save(safetensors.load_file(files[True]), tmp_path / "weights.pth")
    kinds = ["2048", "logits_unbiased"]
    peer = fidelity.FeatureExtractorInceptionV3("peer", kinds, str(tmp_path / "weights.pth"))
    told = [peer(torch.from_numpy(picture.transpose(2, 0, 1)[np.newaxis].copy())) for picture in pictures]
    close(encoder(files[True], "&give=features").encode_images(pictures), np.concatenate([row[0] for row in told]))
    probabilities = np.concatenate([row[1].softmax(dim=1) for row in told])
    close(encoder(files[True], "&give=probabilities").encode_images(pictures), probabilities)


@pytest.fixture
def module() -> Iterator[Callable[[dict[str, Any]], Any]]:
    """Torchvision's network, whatever the state of its native library."""
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    inception = pytest.importorskip("torchvision.models.inception")

    def with_weights(weights: dict[str, Any]) -> Any:
        network = inception.Inception3(
            num_classes=len(weights["fc.bias"]), aux_logits=False, transform_input=False, init_weights=False
        )
        network.load_state_dict(weights)
        taken: list[Any] = []
        network.avgpool.register_forward_hook(lambda *call: taken.append(call[2].flatten(1)))
        network.eval()

        def run(given: Any) -> Any:
            taken.clear()
            with torch.inference_mode():
                logits = network(given)
            return taken[0].numpy(), logits.softmax(dim=1).numpy()

        run.network = network  # type: ignore[attr-defined]
        return run

    yield with_weights


def prepared(made: ImageEncoder, pictures: list[NDArray[np.uint8]]) -> Any:
    return torch.from_numpy(np.stack([made.prepare(picture) for picture in pictures]))


def test_with_torchvisions_weights_it_is_torchvisions_network(
    files: dict[bool, Path], pictures: list[NDArray[np.uint8]], module: Callable[[dict[str, Any]], Any]
) -> None:
    made = encoder(files[False])
    features, probabilities = module(safetensors.load_file(files[False]))(prepared(made, pictures))
    described = made.describe([made.prepare(picture) for picture in pictures])
    close(described.features, features)
    close(described.probabilities, probabilities)
    assert described.probabilities.shape == (len(pictures), 1000)


def test_with_ported_weights_it_is_torchvisions_network_pooled_as_tensorflow_does(
    files: dict[bool, Path], pictures: list[NDArray[np.uint8]], module: Callable[[dict[str, Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    made = encoder(files[True], "&give=features")
    features = made.encode_images(pictures)
    run = module(safetensors.load_file(files[True]))
    plainly = torch.nn.functional.avg_pool2d
    functional = __import__("torchvision.models.inception", fromlist=["F"]).F
    monkeypatch.setattr(functional, "avg_pool2d", lambda *a, **k: plainly(*a, **k, count_include_pad=False))
    last = run.network.Mixed_7c

    def largest(planes: Any) -> Any:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(functional, "avg_pool2d", torch.nn.functional.max_pool2d)
            return type(last).forward(last, planes)

    monkeypatch.setattr(last, "forward", largest)
    close(features, run(prepared(made, pictures))[0])


def test_vectors_are_unit_unless_features(files: dict[bool, Path], pictures: list[NDArray[np.uint8]]) -> None:
    unit, raw, classes = (encoder(files[True], f"&give={give}") for give in ("unit", "features", "probabilities"))
    vectors, features = unit.encode_images(pictures), raw.encode_images(pictures)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(vectors * np.linalg.norm(features, axis=1)[:, np.newaxis], features, rtol=1e-5)
    np.testing.assert_allclose(classes.encode_images(pictures).sum(axis=1), 1, rtol=1e-5)
    assert classes.identity.dim == classes.encode_images(pictures).shape[1] == 1008
    assert len({made.identity for made in (unit, raw, classes)}) == 3
    assert "not of unit length" in raw.identity.preprocessing


def test_a_row_does_not_depend_on_the_batch(files: dict[bool, Path], pictures: list[NDArray[np.uint8]]) -> None:
    made = encoder(files[True], "")
    together = made.encode_images(pictures)
    assert together.dtype == np.float32
    assert all(
        np.array_equal(made.encode_images([picture])[0], row) for picture, row in zip(pictures, together, strict=True)
    )
    assert np.array_equal(made.encode_images(pictures[::-1])[::-1], together)
    assert made.encode_images([]).shape == (0, 2048)


def test_weights_and_resizing_are_named_in_the_identity(files: dict[bool, Path]) -> None:
    made = [encoder(files[True], f"&resize={name}").identity for name in ("auto", "tensorflow", "torch", "clean")]
    assert made[0] == made[1]
    assert len(set(made)) == 3
    assert {len(identity.weights) for identity in made} == {64}
    assert encoder(files[False]).identity.weights != made[0].weights
    assert "1008" not in made[0].preprocessing


def test_what_is_not_inception_is_refused(files: dict[bool, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    safetensors.save_file({"weight": torch.zeros(3)}, other)
    with pytest.raises(IntegrityError, match="not those of InceptionV3"):
        encoder(other)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(files[True].read_bytes()[:-1])
    with pytest.raises(IntegrityError, match="cut or changed"):
        encoder(cut)
    weights = safetensors.load_file(files[True])
    del weights["Mixed_6c.branch7x7_2.conv.weight"]
    safetensors.save_file(weights, tmp_path / "less.safetensors")
    with pytest.raises(IntegrityError, match="not complete"):
        encoder(tmp_path / "less.safetensors")
    pickled = tmp_path / "weights.pth"
    pickled.write_bytes(b"")
    with pytest.raises(UsageError, match="culturekit weights convert"):
        encoder(pickled)
    with pytest.raises(UsageError, match="no such file"):
        encoder(tmp_path / "missing.safetensors")
    with pytest.raises(UsageError, match="no option size"):
        encoder(files[True], "&size=3")
