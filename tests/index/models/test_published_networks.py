"""InceptionV3, LPIPS and ImageReward against torch-fidelity, torchmetrics and BLIP as transformers has it."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
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
from culturekit.index.models.inception_encoder import InceptionEncoder
from culturekit.index.models.inception_encoder import make as make_inception
from culturekit.index.raters.image_reward import DEVIATION, LONGEST, MEAN
from culturekit.index.raters.picture_spread import LpipsMeasure, make
from culturekit.index.raters.quality import SCORERS
from culturekit.index.weights import convert_weights
from culturekit.scores.inputs import ImageTables, PairFolders
from culturekit.scores.spread import SpreadOptions, pairs, spread
from tests.command_line import culturekit
from tests.conftest import HeardProgress
from tests.index.raters.test_picture_spread import drawn

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
transformers = pytest.importorskip("transformers")


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
    saved = {}
    for ported in (True, False):
        saved[ported] = folder / f"{ported}.safetensors"
        safetensors.save_file(state(ported=ported), saved[ported])
    return saved


def encoder(file: Path, options: str = "") -> InceptionEncoder:
    found = make_inception(parse_spec(f"inception:{file}?device=cpu&batch=3{options}"))
    assert isinstance(found, InceptionEncoder)
    return found


def close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert np.ptp(wanted, axis=0).max() > 0.01 * np.abs(wanted).max(), "pictures that differ give different rows"
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def test_both_are_torch_fidelitys(files: dict[bool, Path], pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    mend_torchvision()
    fidelity = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
    torch.save(safetensors.load_file(files[True]), tmp_path / "weights.pth")
    kinds = ["2048", "logits_unbiased"]
    peer = fidelity.FeatureExtractorInceptionV3("peer", kinds, str(tmp_path / "weights.pth"))
    lines = [peer(torch.from_numpy(picture.transpose(2, 0, 1)[np.newaxis].copy())) for picture in pictures]
    close(encoder(files[True], "&give=features").encode_images(pictures), np.concatenate([row[0] for row in lines]))
    probabilities = np.concatenate([row[1].softmax(dim=1) for row in lines])
    close(encoder(files[True], "&give=probabilities").encode_images(pictures), probabilities)


@pytest.mark.parametrize("ported", [True, False])
def test_features_and_probabilities_are_those_of_torchvision_ported_ones_pooled_as_tensorflow_does(
    files: dict[bool, Path], pictures: list[NDArray[np.uint8]], ported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = encoder(files[ported])
    prepared = [found.prepare(picture) for picture in pictures]
    described = found.describe(prepared)
    weights, inception = safetensors.load_file(files[ported]), pytest.importorskip("torchvision.models.inception")
    network = inception.Inception3(num_classes=len(weights["fc.bias"]), aux_logits=False, init_weights=False).eval()
    network.load_state_dict(weights)
    if ported:
        network.fc.bias.data.zero_()
        plainly, last = torch.nn.functional.avg_pool2d, network.Mixed_7c
        monkeypatch.setattr(inception.F, "avg_pool2d", lambda *a, **k: plainly(*a, **k, count_include_pad=False))

        def largest(planes: Any) -> Any:
            with pytest.MonkeyPatch.context() as inside:
                inside.setattr(inception.F, "avg_pool2d", torch.nn.functional.max_pool2d)
                return type(last).forward(last, planes)

        monkeypatch.setattr(last, "forward", largest)
    features: list[Any] = []
    network.avgpool.register_forward_hook(lambda *call: features.append(call[2].flatten(1)))
    with torch.inference_mode():
        probabilities = network(torch.from_numpy(np.stack(prepared))).softmax(dim=1).numpy()
    close(described.features, features[0].numpy())
    close(described.probabilities, probabilities)
    assert described.probabilities.shape == (len(pictures), 1008 if ported else 1000)


def test_vectors_are_unit_unless_features(files: dict[bool, Path], pictures: list[NDArray[np.uint8]]) -> None:
    unit, raw, classes = (encoder(files[True], f"&give={give}") for give in ("unit", "features", "probabilities"))
    vectors, features = unit.encode_images(pictures), raw.encode_images(pictures)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(vectors * np.linalg.norm(features, axis=1)[:, np.newaxis], features, rtol=1e-5)
    np.testing.assert_allclose(classes.encode_images(pictures).sum(axis=1), 1, rtol=1e-5)
    assert classes.identity.dim == classes.encode_images(pictures).shape[1] == 1008
    assert len({result.identity for result in (unit, raw, classes)}) == 3
    assert "not of unit length" in raw.identity.preprocessing


def test_a_row_does_not_depend_on_the_batch(files: dict[bool, Path], pictures: list[NDArray[np.uint8]]) -> None:
    found = encoder(files[True], "")
    together = found.encode_images(pictures)
    assert together.dtype == np.float32
    assert all(
        np.array_equal(found.encode_images([picture])[0], row) for picture, row in zip(pictures, together, strict=True)
    )
    assert np.array_equal(found.encode_images(pictures[::-1])[::-1], together)
    assert found.encode_images([]).shape == (0, 2048)


def test_weights_and_resizing_are_named_in_the_identity(files: dict[bool, Path]) -> None:
    lines = [encoder(files[True], f"&resize={name}").identity for name in ("auto", "tensorflow", "torch", "clean")]
    assert lines[0] == lines[1]
    assert len(set(lines)) == 3
    assert {len(identity.weights) for identity in lines} == {64}
    assert encoder(files[False]).identity.weights != lines[0].weights
    assert "1008" not in lines[0].preprocessing


def random_lpips(
    path: Path, model: str = "alexnet", *, heads: bool = True, layers: bool = True, prefix: str = "net.slice1"
) -> Path:
    """Random numbers for one of torchvision's networks, and random heads."""
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    with torch.device("meta"):
        shapes = getattr(pytest.importorskip("torchvision.models"), model)(weights=None).features.state_dict()
    generator, found = torch.Generator().manual_seed(0), dict[str, Any]()
    for name, tensor in shapes.items() if layers else ():
        scale = (2 / tensor[0].numel()) ** 0.5 if tensor.dim() > 1 else 0.01
        found[f"{prefix}.{name}"] = torch.randn(tensor.shape, generator=generator) * scale
    for index, (channels, _) in enumerate(COMPARED[model] if heads else ()):
        found[f"lin{index}.model.1.weight"] = torch.rand((1, channels, 1, 1), generator=generator)
    safetensors.save_file(found, path)
    return path


# channels and side of what is compared of a picture of 64 x 64: the answers behind a ReLU, before they are pooled
COMPARED: Mapping[str, Sequence[tuple[int, int]]] = {
    "alexnet": ((64, 15), (192, 7), (384, 3), (256, 3), (256, 3)),
    "vgg16": ((64, 64), (128, 32), (256, 16), (512, 8), (512, 4)),
    "squeezenet1_1": ((64, 31), (128, 15), (256, 7), (384, 3), (384, 3), (512, 3), (512, 3)),
}


@pytest.mark.parametrize(("model", "short"), [("alexnet", "alex"), ("vgg16", "vgg"), ("squeezenet1_1", "squeeze")])
def test_the_layers_that_are_compared_are_the_published_ones(model: str, short: str, tmp_path: Path) -> None:
    found = measure(random_lpips(tmp_path / "lpips.safetensors", model))
    assert found.name == f"lpips-{short}"
    picture = torch.randn(1, 3, 64, 64)
    planes = list(found.network.taken(picture))
    shift, scale = (torch.tensor(one)[:, None, None] for one in ((-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)))
    first = found.network.layers[: 4 if short == "vgg" else 2]
    assert torch.allclose(planes[0], first((picture - shift) / scale), atol=1e-5)
    assert tuple((plane.shape[1], plane.shape[2]) for plane in planes) == COMPARED[model]
    assert min(float(plane.min()) for plane in planes) == 0


@pytest.mark.parametrize(("spec", "whose", "dropped"), [
    ("inception:", "InceptionV3", "Mixed_6c.branch7x7_2.conv.weight"), ("lpips:", "LPIPS", "net.slice1.6.bias"),
])  # fmt: skip
def test_weights_of_others_and_those_that_are_cut_or_not_whole_are_refused(
    spec: str, whose: str, dropped: str, files: dict[bool, Path], tmp_path: Path
) -> None:
    make_one = make_inception if whose == "InceptionV3" else make
    good = files[True] if whose == "InceptionV3" else random_lpips(tmp_path / "good.safetensors")
    other, cut, less = (tmp_path / f"{name}.safetensors" for name in ("other", "cut", "less"))
    safetensors.save_file({"weight": torch.zeros(3)}, other)
    cut.write_bytes(good.read_bytes()[:-1])
    safetensors.save_file({k: v for k, v in safetensors.load_file(good).items() if k != dropped}, less)
    pickled = tmp_path / "weights.pth"
    pickled.write_bytes(b"")
    for path, error, words in (
        (other, IntegrityError, f"not those of {whose}"), (cut, IntegrityError, "cut or changed"),
        (less, IntegrityError, rf"not complete.*\b{re.escape(dropped.removeprefix('net.slice1.'))}"),
        (pickled, UsageError, "culturekit weights convert"),
        (tmp_path / "missing.safetensors", UsageError, "no such file"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            make_one(parse_spec(f"{spec}{path}"))
    with pytest.raises(UsageError, match="needs a file of weights; expected lpips:FILE"):
        make(parse_spec("lpips"))
    with pytest.raises(UsageError, match="at least 32"):
        make(parse_spec("lpips:any.safetensors?side=8"))
    with pytest.raises(UsageError, match="no option size"):
        encoder(files[True], "&size=3")


NETWORKS = ["alex", pytest.param("vgg", marks=pytest.mark.slow), pytest.param("squeeze", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def five() -> list[NDArray[np.uint8]]:
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
def test_distances_are_those_of_torchmetrics(network: str, five: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    module = peer(network)
    result = measure(saved(module, tmp_path / "lpips.safetensors"))
    assert result.name == f"lpips-{network}"
    found = result.distances([result.prepare(picture) for picture in five])
    ranged = [torch.from_numpy(picture.transpose(2, 0, 1).copy()).float()[None] / 127.5 - 1 for picture in five]
    with torch.inference_mode():
        wanted = np.array([[float(module(a, b)) for b in ranged] for a in ranged])
    off = ~np.eye(len(five), dtype=bool)
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


def test_distances_are_the_sums_that_the_paper_writes(five: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    result = measure(random_lpips(tmp_path / "alex.safetensors"))
    ready = [result.prepare(picture) for picture in five[:3]]
    found = result.distances(ready)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert found[i, j] == pytest.approx(naive(result, ready[i], ready[j]), rel=1e-5)


def test_heads_and_network_may_lie_in_two_files(five: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    whole = measure(random_lpips(tmp_path / "whole.safetensors"))
    heads = random_lpips(tmp_path / "heads.safetensors", layers=False)
    other = random_lpips(tmp_path / "alexnet.safetensors", heads=False, prefix="features")
    with pytest.raises(UsageError, match="heads of LPIPS alone"):
        measure(heads)
    parted = measure(heads, f"side=64&backbone={other}")
    ready = [whole.prepare(picture) for picture in five[:2]]
    assert parted.distances(ready)[0, 1] == pytest.approx(naive(parted, *ready), rel=1e-5)
    assert parted.parameters["weights"] != whole.parameters["weights"]


def test_pictures_are_resized_unless_told_not_to(tmp_path: Path) -> None:
    path = random_lpips(tmp_path / "alex.safetensors")
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


def test_the_stage_gives_the_same_bytes_for_any_number_of_workers(tmp_path: Path) -> None:
    weights = random_lpips(tmp_path / "alex.safetensors")
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


PROMPT = ["a", "photo", "of", "tea", "in", "iran", "market", "people", "dancing"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PROMPT]
# how the published checkpoint calls what transformers has in BLIP's picture encoder
PUBLISHED = (
    ("embeddings.class_embedding", "cls_token"), ("embeddings.position_embedding", "pos_embed"),
    ("embeddings.patch_embedding", "patch_embed.proj"), ("encoder.layers.", "blocks."),
    ("self_attn.projection", "attn.proj"), ("self_attn.qkv", "attn.qkv"), ("post_layernorm", "norm"),
    ("layer_norm", "norm"),
)  # fmt: skip
Rewarding = Callable[[Any, Any], Any]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rewarding]:
    """Write a checkpoint as it is published, a pickle, and have it converted; a tokenizer; and what gives rewards."""
    mend_torchvision()
    folder = tmp_path_factory.mktemp("imagereward")
    torch.manual_seed(1)
    seen = transformers.BlipVisionModel(transformers.BlipVisionConfig(
        hidden_size=128, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=16,
        layer_norm_eps=1e-6,
    )).eval()  # fmt: skip
    read = transformers.BlipTextModel(transformers.BlipTextConfig(
        vocab_size=len(WORDS) + 2, hidden_size=64, encoder_hidden_size=128, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=1, max_position_embeddings=64, bos_token_id=2, sep_token_id=3,
    ), add_pooling_layer=False).eval()  # fmt: skip
    between = torch.nn.Identity()
    top = torch.nn.Sequential(*(part for out, into in ((32, 64), (16, 32), (1, 16))
                                for part in (torch.nn.Linear(into, out), between)))  # fmt: skip
    parameters = {}
    for model, prefix in ((seen, "blip.visual_encoder."), (read, "blip.text_encoder."), (top, "mlp.layers.")):
        for name, one in model.named_parameters():
            for theirs, published in PUBLISHED if model is seen else ():
                name = name.replace(theirs, published)
            parameters[prefix + name] = torch.nn.init.normal_(one.detach(), std=0.2)
    assert {"blip.visual_encoder.blocks.1.attn.qkv.weight", "blip.visual_encoder.norm.bias", "mlp.layers.4.weight",
            "blip.text_encoder.encoder.layer.1.crossattention.self.key.weight"} <= parameters.keys()  # fmt: skip
    torch.save(parameters, folder / "ImageReward.pt")
    words = ("--sha256", digest_file(folder / "ImageReward.pt"), "--kind", "imagereward", "--out", "reward.safetensors")
    done: subprocess.CompletedProcess[str] = culturekit("weights", "convert", "ImageReward.pt", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    tokenizer = transformers.BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})
    tokenizer.save_pretrained(folder / "tokenizer")

    def reward(pixels: Any, ids: Any) -> Any:
        with torch.no_grad():
            looked = seen(pixel_values=pixels).last_hidden_state
            value = top(read(
                input_ids=ids, attention_mask=(ids != 0).long(), encoder_hidden_states=looked,
                encoder_attention_mask=torch.ones(looked.shape[:2]), is_decoder=False,
            ).last_hidden_state[:, 0])  # fmt: skip
        return ((value - MEAN) / DEVIATION)[:, 0].double().numpy()

    return folder, reward


def test_rewards_are_those_of_the_published_network(tiny: tuple[Path, Rewarding]) -> None:
    folder, reward = tiny
    scorer: Any = SCORERS.make(f"imagereward:{folder}/reward.safetensors?tokenizer={folder}/tokenizer")
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 256, (*size, 3), np.uint8) for size in ((40, 60), (32, 32), (90, 50))]
    prompts = ["a photo of tea in iran", "people dancing", "market"]
    found = scorer.score(pictures, prompts)
    seen = np.stack([scorer.prepare(picture) for picture in pictures]).astype(np.float32) / 255
    mean, deviation = (np.array(part, np.float32) for part in (
        (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)))  # fmt: skip
    pixels = torch.from_numpy((seen - mean) / deviation).permute(0, 3, 1, 2)
    rows = [[2, *(WORDS.index(word) for word in prompt.split()), 3] for prompt in prompts]
    ids = torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows])
    assert found == pytest.approx(reward(pixels, ids), abs=2e-4)
    assert len({round(value, 3) for value in found}) == len(found)
    assert scorer.score(pictures[:1], prompts[:1]) == pytest.approx(found[:1], abs=1e-6), "no value depends on others"
    assert [one.tokens for one in scorer.too_long(["tea " * 50, "tea"])] == [52]


def test_other_weights_and_tokenizers_are_refused(tiny: tuple[Path, Rewarding]) -> None:
    folder, _ = tiny
    many = {word: number for number, word in enumerate([*WORDS, *(f"word{n}" for n in range(9))])}
    transformers.BertTokenizer(vocab=many).save_pretrained(folder / "many")
    with pytest.raises(UsageError, match="more words than the weights"):
        SCORERS.make(f"imagereward:{folder}/reward.safetensors?tokenizer={folder}/many")
    with pytest.raises(UsageError, match="culturekit weights convert"):
        SCORERS.make(f"imagereward:{folder}/ImageReward.pt?tokenizer={folder}/tokenizer")
