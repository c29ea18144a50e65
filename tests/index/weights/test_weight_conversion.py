import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import zipfile
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.model_files import read_header
from culturekit.index.weights import ConvertedWeights, Kind, convert_weights, recognised

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

CLIP_SHAPES: Mapping[str, tuple[int, ...]] = {
    "visual.conv1.weight": (8, 3, 4, 4), "visual.proj": (8, 6), "visual.class_embedding": (8,),
    "visual.transformer.resblocks.0.ln_1.weight": (8,), "positional_embedding": (7, 8),
    "token_embedding.weight": (20, 8), "text_projection": (8, 6), "ln_final.weight": (8,), "logit_scale": (),
}  # fmt: skip


def weights(shapes: Mapping[str, tuple[int, ...]] = CLIP_SHAPES, dtype: Any = None) -> dict[str, Any]:
    torch.manual_seed(0)
    return {name: torch.randn(shape).to(dtype or torch.float32) for name, shape in shapes.items()}


def saved(folder: Path, content: Any, **options: Any) -> Path:
    path = folder / "checkpoint.pt"
    torch.save(content, path, **options)
    return path


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def converted(path: Path, **options: Any) -> ConvertedWeights:
    return convert_weights(path, sha256=hash_of(path), out=path.parent / "weights.safetensors", **options)


def refused(path: Path, error: type[CultureKitError], match: str) -> None:
    before = sorted(path.parent.iterdir())
    with pytest.raises(error, match=match):
        converted(path)
    assert sorted(path.parent.iterdir()) == before


class Runs:
    """A pickle that runs a program when it is opened."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call, self.arguments


def test_tensors_come_through_bit_for_bit_and_the_file_says_where_from(tmp_path: Path) -> None:
    source = saved(tmp_path, weights())
    made = converted(source)
    read = safetensors.load_file(made.path)
    assert read.keys() == CLIP_SHAPES.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in weights().items())
    assert made.sha256 == hash_of(made.path)
    assert (made.kind, made.tensors) == ("open-clip", len(CLIP_SHAPES))
    assert read_header(made.path).notes == {
        "culturekit.kind": "open-clip", "culturekit.variant": "ViT of width 8, depth 1, patch 4",
        "culturekit.source": "checkpoint.pt", "culturekit.source_sha256": hash_of(source), "format": "pt",
    }  # fmt: skip


@pytest.mark.parametrize("wrapper", ["state_dict", "model", "model_state_dict", "params"])
@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_wrappers_and_their_prefixes_are_taken_off(tmp_path: Path, wrapper: str, prefix: str) -> None:
    inner = OrderedDict((prefix + name, tensor) for name, tensor in weights().items())
    made = converted(saved(tmp_path, {wrapper: inner, "epoch": 3, "optimizer": {"state": {}, "lr": 0.1}}))
    assert safetensors.load_file(made.path).keys() == CLIP_SHAPES.keys()
    assert made.left_out == ("epoch", "optimizer")


def turned_and_shared() -> dict[str, Any]:
    content = weights()
    shared = {"text_projection": content["visual.proj"], "visual.class_embedding": content["token_embedding.weight"][3]}
    return {**content, **shared, "visual.proj": torch.randn(6, 8).T}


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("made", [
    *(lambda dtype=dtype: weights(dtype=getattr(torch, dtype)) for dtype in ("float64", "float16", "bfloat16")),
    turned_and_shared,
    lambda: {name: torch.nn.Parameter(tensor) for name, tensor in weights().items()},
])  # fmt: skip
def test_what_tensors_are_is_kept(tmp_path: Path, made: Callable[[], dict[str, Any]], new: bool) -> None:
    content = made()
    read = safetensors.load_file(converted(saved(tmp_path, content, _use_new_zipfile_serialization=new)).path)
    assert all(torch.equal(read[name], tensor) for name, tensor in content.items())
    assert {tensor.dtype for tensor in read.values()} == {tensor.dtype for tensor in content.values()}


def test_the_same_weights_give_the_same_bytes_and_may_be_converted_again(tmp_path: Path) -> None:
    source = saved(tmp_path, weights())
    first = converted(source)
    assert converted(source) == first
    turned = dict(reversed(weights().items()))
    (tmp_path / "other").mkdir()
    again = converted(saved(tmp_path / "other", turned))
    assert safetensors.load_file(again.path).keys() == CLIP_SHAPES.keys()
    start = 8 + struct.unpack("<Q", first.path.read_bytes()[:8])[0]
    assert again.path.read_bytes()[start:] == first.path.read_bytes()[start:]


@pytest.mark.parametrize("bad", [
    lambda path: Runs(os.system, f"touch {path}/ran"), lambda path: Runs(exec, f"open({str(path / 'ran')!r}, 'w')"),
    lambda path: Runs(subprocess.check_output, ["touch", f"{path}/ran"]),
    lambda path: Runs(open, str(path / "ran"), "w"),
    lambda path: Runs(eval, f"__import__('pathlib').Path({str(path / 'ran')!r}).touch()"),
    lambda path: Namespace(lr=0.1),
], ids=["os.system", "exec", "subprocess", "open", "eval", "a class"])  # fmt: skip
@pytest.mark.parametrize("form", ["zip", "old", "bare pickle"])
def test_a_pickle_that_runs_something_runs_nothing(tmp_path: Path, bad: Callable[[Path], Any], form: str) -> None:
    content = {**weights(), "extra": bad(tmp_path)}
    if form == "bare pickle":
        source = tmp_path / "checkpoint.pt"
        source.write_bytes(pickle.dumps({"extra": bad(tmp_path)}, protocol=2))
    else:
        source = saved(tmp_path, content, _use_new_zipfile_serialization=form == "zip")
    refused(source, IntegrityError, "nothing of it was run")
    assert not (tmp_path / "ran").exists()


def test_a_torchscript_archive_is_refused(tmp_path: Path) -> None:
    source = saved(tmp_path, weights())
    with zipfile.ZipFile(source, "a") as archive:
        archive.writestr("checkpoint/constants.pkl", b"")
    with pytest.raises(IntegrityError, match="nothing of it was run") as told:
        converted(source)
    assert told.value.found == "a TorchScript archive"


def test_another_file_than_the_published_one_is_not_opened(tmp_path: Path) -> None:
    source = saved(tmp_path, Runs(os.system, f"touch {tmp_path}/ran"))
    with pytest.raises(IntegrityError, match="not the file that was published") as told:
        convert_weights(source, sha256="0" * 64, out=tmp_path / "weights.safetensors")
    assert told.value.found == hash_of(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt"]


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, 0.99])
@pytest.mark.parametrize("new", [True, False])
def test_a_file_cut_short_is_refused(tmp_path: Path, kept: float, new: bool) -> None:
    source = saved(tmp_path, weights(), _use_new_zipfile_serialization=new)
    content = source.read_bytes()
    source.write_bytes(content[: int(kept if kept > 1 or isinstance(kept, int) else kept * len(content))])
    refused(source, IntegrityError, "cut short or broken|nothing of it was run")


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused(tmp_path: Path) -> None:
    source = saved(tmp_path, weights())
    packed = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry) + b"\0" * 50_000_000 * entry.filename.endswith("data/0"))
    source.write_bytes(packed.getvalue())
    refused(source, IntegrityError, "unpacks to more than it is")


@pytest.mark.parametrize("repeated", ["one number", "one storage"])
def test_few_numbers_that_claim_to_be_many_are_refused(tmp_path: Path, repeated: str) -> None:
    whole = torch.randn(1000, 8)
    claims = {
        "one number": {"token_embedding.weight": torch.zeros(1).expand(1_000_000, 100_000)},
        "one storage": {f"visual.part.{number}": whole for number in range(50)},
    }
    refused(saved(tmp_path, {**weights(), **claims[repeated]}), IntegrityError, "unpacks to more than it is")


@pytest.mark.parametrize(("content", "found"), [({"weight": "tensor"}, "weight"), ({}, "no tensor"), ([1, 2], "list")])
def test_what_holds_no_weights_is_refused(tmp_path: Path, content: Any, found: str) -> None:
    refused(saved(tmp_path, content), UsageError, found)


def test_unknown_weights_another_kind_and_a_file_of_somebody_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"of no known kind.*1 tensors: layer\.weight\\x1b\[2J \(3, 4\)"):
        converted(saved(tmp_path, {"layer.weight\x1b[2J": torch.zeros(3, 4)}))
    with pytest.raises(UsageError, match=r"another kind; expected hpsv2\.1, found open-clip ViT of width 8"):
        converted(saved(tmp_path, weights()), kind="hpsv2.1")
    (tmp_path / "weights.safetensors").write_bytes(b"mine")
    with pytest.raises(UsageError, match="something else stands there"):
        converted(saved(tmp_path, weights()))
    assert (tmp_path / "weights.safetensors").read_bytes() == b"mine"


@pytest.mark.parametrize("strange", [
    lambda: {"backdoor.weight": torch.zeros(2)}, lambda: {"visual.odd": torch.zeros(2, dtype=torch.complex64)},
    lambda: {"visual.odd": torch.eye(3).to_sparse()},
])  # fmt: skip
def test_strangers_among_known_weights_are_refused(tmp_path: Path, strange: Callable[[], dict[str, Any]]) -> None:
    refused(saved(tmp_path, {**weights(), **strange()}), CultureKitError, "known kind|more than tensors")


@pytest.mark.parametrize(("options", "match"), [
    ({"sha256": "abc"}, "not a SHA-256"), ({"out": "weights.pt"}, "another ending"),
    ({"out": "missing/weights.safetensors"}, "no such folder"), ({"file": "missing.pt"}, "no such file"),
    ({"kind": "hps"}, "no kind of weights 'hps'"),
])  # fmt: skip
def test_a_wrong_request_is_explained(tmp_path: Path, options: dict[str, str], match: str) -> None:
    source = saved(tmp_path, weights())
    given = {"file": "checkpoint.pt", "sha256": hash_of(source), "out": "weights.safetensors", **options}
    with pytest.raises(UsageError, match=match):
        convert_weights(tmp_path / given["file"], sha256=given["sha256"], out=tmp_path / given["out"],
                        kind=given.get("kind"))  # fmt: skip


def inception_shapes(classes: int) -> dict[str, tuple[int, ...]]:
    return {
        "Conv2d_1a_3x3.conv.weight": (32, 3, 3, 3), "Mixed_7c.branch_pool.conv.weight": (192, 2048, 1, 1),
        "Mixed_5b.branch1x1.bn.num_batches_tracked": (), "fc.weight": (classes, 2048), "fc.bias": (classes,),
    }  # fmt: skip


@pytest.mark.parametrize(("shapes", "kind", "variant"), [
    (inception_shapes(1008), "fid-inception", ""),
    (inception_shapes(1000), "inception", ""),
    ({f"lin{n}.model.1.weight": (1, c, 1, 1) for n, c in enumerate((64, 128, 256, 512, 512))}, "lpips", "VGG-16"),
    (
        {
            "blip.visual_encoder.cls_token": (1, 1, 8),
            "blip.visual_encoder.patch_embed.proj.weight": (8, 3, 4, 4),
            "blip.text_encoder.embeddings.word_embeddings.weight": (30, 8),
            "mlp.layers.0.weight": (4, 8),
        },
        "imagereward",
        "",
    ),
    (
        {
            "vision_model.embeddings.class_embedding": (8,),
            "vision_model.embeddings.patch_embedding.weight": (8, 3, 4, 4),
            "text_model.embeddings.token_embedding.weight": (30, 8),
            "text_model.embeddings.position_ids": (1, 77),
            "visual_projection.weight": (6, 8),
            "text_projection.weight": (6, 8),
            "logit_scale": (),
        },
        "transformers-clip",
        "",
    ),
])  # fmt: skip
def test_kinds_are_known_by_names_and_shapes(shapes: dict[str, tuple[int, ...]], kind: str, variant: str) -> None:
    assert recognised(shapes) == (kind, variant)
    assert recognised({name: (*shape, 5, 5, 5) for name, shape in shapes.items()}) is None


def test_a_scorer_of_human_preference_is_a_large_clip_that_was_asked_for() -> None:
    blocks = {f"visual.transformer.resblocks.{number}.ln_1.weight": (1280,) for number in range(32)}
    shapes = {**CLIP_SHAPES, **blocks, "visual.conv1.weight": (1280, 3, 14, 14), "visual.proj": (1280, 1024)}
    cases: dict[Kind | None, str] = {None: "open-clip", "hpsv2.1": "hpsv2.1", "lpips": "open-clip"}
    for kind, found in cases.items():
        assert recognised(shapes, asked=kind) == (found, "ViT-H-14")


def test_the_command_prints_the_new_hash(tmp_path: Path) -> None:
    source = saved(tmp_path, {"state_dict": weights(), "epoch": 1})
    out = tmp_path / "weights.safetensors"
    command = ["weights", "convert", str(source), "--sha256", hash_of(source), "--out", str(out)]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert f"sha256 {hash_of(out)}" in told.output
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["left_out"] == ["epoch"]
    refusal = CliRunner().invoke(app, [*command, "--kind", "lpips"]).exception
    assert isinstance(refusal, UsageError)
    assert "another kind" in str(refusal)
