"""CLIP, SigLIP, SigLIP 2, DINOv2 and DINOv3 from a folder: pictures, and but for DINO texts, to unit vectors."""

import importlib
import string
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import IntegrityError, MissingDependency, UsageError
from culturekit.core.model_files import check_safetensors, read_json
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package, quiet, same_bits
from culturekit.index.embedding.embedding import unit
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, TooLong, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, on_device, token_vectors, usual_batch
from culturekit.index.models.transformers_pictures import PatchPlan, PicturePlan, patch_plan, picture_plan, shape_of
from culturekit.index.weights import ModelFolder, find_model, weight_files
from culturekit.version import install_line

# Texts as a model's own tokenizer writes them, in groups of one length each.

_Rewrite: TypeAlias = Callable[[str], str]
_STEP = 16
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Tokens:
    """A tokenizer and the length its model reads.

    A text is filled up to a length that it alone decides: all of the context where the model was taught so, else the
    next multiple of 16. So its vector does not depend on the texts beside it.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401 - a tokenizer
        *,
        most: int,
        fill: bool,
        rewrite: _Rewrite = str,
    ) -> None:
        """Take a tokenizer, the most tokens that are read, and whether every text is filled up to that.

        `rewrite` is done to every text first.
        """
        self.tokenizer = tokenizer
        self.rewrite = rewrite
        self.most = most
        self.fill = fill
        self.turn = threading.Lock()
        self.names = [name for name in ("input_ids", "attention_mask") if name in tokenizer.model_input_names]
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token

    def __str__(self) -> str:
        """Say how long texts may be, as it stands in an identity."""
        return f"texts of at most {self.most} tokens"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, those that mark beginning and end included."""
        if not texts:
            return []
        with self.turn:
            written = self.tokenizer(list(map(self.rewrite, texts)), truncation=False, padding=False, verbose=False)
        return [len(tokens) for tokens in written["input_ids"]]

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than what is read."""
        counted = enumerate(self.counts(texts))
        return [TooLong(index, tokens, self.most) for index, tokens in counted if tokens > self.most]

    def encode(self, texts: Sequence[str], batches: Batches, forward: Callable[..., Any], *, dim: int) -> Vectors:
        """Encode texts, those of one length together; what is longer than the context is cut."""
        vectors = np.empty((len(texts), dim), np.float32)
        for places, rows in self.groups(texts):
            vectors[places] = batches.run(forward, rows, dim=dim)
        return vectors

    def groups(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[NDArray[np.int64]]]]:
        """Write texts as tokens, shortest first: places of texts of one length, of each ids and maybe a mask."""
        lengths = [self.filled(count) for count in self.counts(texts)]
        for length in sorted(set(lengths)):
            places = [index for index, filled in enumerate(lengths) if filled == length]
            with self.turn:
                written = self.tokenizer(
                    [self.rewrite(texts[index]) for index in places],
                    padding="max_length",
                    truncation=True,
                    max_length=length,
                    return_tensors="np",
                )
            columns = [np.asarray(written[name], np.int64) for name in self.names]
            yield places, list(np.stack(columns, axis=1))

    def keeps_capitals(self) -> bool:
        """Find out whether capitals and small letters are told apart."""
        large, small = self.tokenizer(list(map(self.rewrite, ["KYIV", "kyiv"])), padding=False)["input_ids"]
        return bool(large != small)

    def filled(self, count: int) -> int:
        """Give the length that a text of so many tokens is filled up to, or cut to."""
        return self.most if self.fill else min(self.most, -(-count // _STEP) * _STEP)


def canonical(text: str) -> str:
    """Write a text as SigLIP's tokenizer does before it splits it: small letters, no punctuation, single spaces."""
    return " ".join(text.lower().translate(_PUNCTUATION).split())


# The models of transformers that can encode: how each is recognised, loaded from its folder, and asked.

_VOCABULARIES = ("vocab.json", "vocab.txt", "spiece.model", "tokenizer.model")
_TextLength: TypeAlias = Literal["own", "full"]


@dataclass(frozen=True, slots=True)
class Family:
    """Models of one `model_type`: their class, their usual image processor, and whether and how they read texts.

    `texts` is "full" where a text is always filled up to the whole context, "own" where it need not be, and None
    where the model reads pictures only. `patches` is true where pictures keep their proportions. `features` names the
    vectors of pictures as they are, before they are brought to length one.
    """

    model: str
    processor: str
    texts: _TextLength | None = None
    patches: bool = False
    any_size: bool = False
    features: str = ""

    def dim(self, config: Any) -> int:  # noqa: ANN401 - a model's config
        """Give the length of a vector."""
        if self.model == "CLIPModel":
            return int(config.projection_dim)
        if self.texts:
            return int(config.vision_config.hidden_size)
        return int(config.hidden_sizes[-1] if hasattr(config, "hidden_sizes") else config.hidden_size)


_FAMILIES: Mapping[str, Family] = {
    "clip": Family("CLIPModel", "CLIPImageProcessor", "own", features="CLIP"),
    "siglip": Family("SiglipModel", "SiglipImageProcessor", "full"),
    "siglip2": Family("Siglip2Model", "Siglip2ImageProcessor", "full", patches=True),
    "dinov2": Family("Dinov2Model", "BitImageProcessor", any_size=True, features="DINOv2"),
    "dinov2_with_registers": Family("Dinov2WithRegistersModel", "BitImageProcessor", any_size=True, features="DINOv2"),
    "dinov3_vit": Family("DINOv3ViTModel", "DINOv3ViTImageProcessor", any_size=True, features="DINOv3"),
    "dinov3_convnext": Family("DINOv3ConvNextModel", "DINOv3ViTImageProcessor", any_size=True, features="DINOv3"),
}


def _picture_settings(folder: ModelFolder) -> tuple[dict[str, Any], Path]:
    """Read what a folder says of its pictures, and in which file."""
    separate, shared = folder.path / "preprocessor_config.json", folder.path / "processor_config.json"
    if not separate.is_file() and shared.is_file():
        settings = read_json(shared).get("image_processor")
        if isinstance(settings, dict):
            return settings, shared
    return read_json(separate), separate


def checked_model(kind: str, folder: Path | None, *, where: str, **settings: Any) -> Any:  # noqa: ANN401 - torch types
    """Load a model of transformers, of a folder or of the tensors and the config in `settings`; none is made up."""
    transformers = needed_package("transformers", kind="encoder transformers", extra="embed")
    try:
        with quiet("transformers"):
            model, report = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True, **settings)
    except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
        raise IntegrityError(
            "the model cannot be loaded: its weights and its settings do not belong together",
            where=where,
            found=str(error).strip().partition("\n")[0],
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise IntegrityError(
            "weights are missing, and would be made up at random",
            where=where,
            found=f"{len(missing)} missing, such as {missing[0]}",
        )
    return model.eval()


def load_model(folder: ModelFolder, family: Family, *, device: Any, dtype: Any) -> Any:  # noqa: ANN401 - torch types
    """Load a model from its safetensors; no code of the folder is run."""
    check_safetensors(weight_files(folder.path))
    safe = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    return checked_model(family.model, folder.path, where=str(folder.path), dtype=dtype, **safe).to(device)


def load_tokenizer(folder: ModelFolder) -> tuple[Any, _Rewrite]:
    """Load a tokenizer from its folder alone, with what is to be done to a text first.

    SigLIP's own tokenizer needs sentencepiece. Where the same pieces are in tokenizer.json they are read from there,
    on every machine alike, after the rewriting that SigLIP's tokenizer does in Python.
    """
    transformers = needed_package("transformers", kind="encoder transformers", extra="embed")
    whole, settings = folder.path / "tokenizer.json", folder.path / "tokenizer_config.json"
    if not whole.is_file() and not any((folder.path / name).is_file() for name in _VOCABULARIES):
        raise UsageError("the tokenizer is missing", where=str(folder.path), expected="tokenizer.json")
    named = str(read_json(settings).get("tokenizer_class", "")) if settings.is_file() else ""
    of_siglip = named.removesuffix("Fast") == "SiglipTokenizer"
    kind = transformers.PreTrainedTokenizerFast if of_siglip and whole.is_file() else transformers.AutoTokenizer
    try:
        with quiet("transformers"):
            tokenizer = kind.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # which tokenizers raises itself
        found = str(error).strip().partition("\n")[0]
        if isinstance(error, ImportError) and "sentencepiece" in found.lower():
            raise MissingDependency(
                "this tokenizer needs the package sentencepiece, which is not installed",
                where=str(folder.path),
                hint=f"Install it with: {install_line(packages='sentencepiece protobuf')}",
            ) from error
        raise IntegrityError("the tokenizer cannot be loaded", where=str(folder.path), found=found) from error
    return tokenizer, canonical if of_siglip else str


@dataclass(frozen=True, slots=True)
class TransformersOptions(TorchOptions):
    """How a model is run.

    Attributes:
        lowercase: Write texts in small letters first, whatever the tokenizer does.
        give: What the vectors of pictures are: of length one, or with `features` as CLIP, DINOv2 and DINOv3 give them,
            for distances.
    """

    lowercase: bool = False
    give: Literal["unit", "features", "patches"] = "unit"


@dataclass(frozen=True, slots=True)
class _LoadedModel:
    """A model on its device, and how it wants its pictures."""

    folder: ModelFolder
    family: Family
    network: Any
    plan: PicturePlan | PatchPlan
    device: Any
    dtype: Any
    batch: int

    @property
    def dim(self) -> int:
        return self.family.dim(self.network.config)


class _TransformersImageEncoder:
    """Turns pictures into vectors; on its own for models that read no texts."""

    caveat = ""

    def __init__(self, loaded: _LoadedModel, *, texts: str = "", as_they_are: bool = False) -> None:
        """Take a model, what its identity says of texts, and whether vectors keep their length."""
        self.loaded, self.as_they_are = loaded, as_they_are
        self.batch_size = loaded.batch
        self.batches = Batches(loaded.batch)
        colours = loaded.plan.normalisation
        deviation = np.array(colours.deviation)
        self.factor, self.shift = (
            on_device(list(numbers.astype(np.float32)), loaded.device)
            for numbers in (colours.scale / deviation, -np.array(colours.mean) / deviation)
        )
        self.identity = EncoderIdentity(
            name=f"{loaded.family.features} features" if as_they_are else "transformers",
            weights=loaded.folder.digest(),
            revision=loaded.folder.revision,
            preprocessing="; ".join(filter(None, [str(loaded.plan), texts])),
            dtype=str(loaded.dtype).removeprefix("torch."),
            dim=loaded.dim,
        )

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Resize and crop one picture, in bytes; they become the model's numbers on the device."""
        return self.loaded.plan.prepare(picture)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures, `batch_size` at once."""
        vectors = self.batches.run(self.forward, pictures, dim=self.identity.dim)
        return vectors if self.as_they_are else unit(vectors, where=self.identity.dtype)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def forward(self, pictures: Sequence[Prepared]) -> Any:  # noqa: ANN401 - a tensor
        """Run the model over one batch."""
        network, inputs = self.loaded.network, self.inputs(pictures)
        answer = network.get_image_features(**inputs) if self.loaded.family.texts else network(**inputs)
        return _pooled(answer)

    def inputs(self, pictures: Sequence[Prepared]) -> Mapping[str, Any]:
        """Bring a batch to the device, and its bytes to the numbers that the model reads."""
        device, dtype, plan = self.loaded.device, self.loaded.dtype, self.loaded.plan
        prepared = on_device(pictures, device)
        if isinstance(plan, PicturePlan):
            return {"pixel_values": self.numbers(prepared).permute(0, 3, 1, 2).to(dtype)}
        shapes = [shape_of(picture) for picture in pictures]
        there = [(np.arange(plan.most) < shape.prod()).astype(np.int64) for shape in shapes]
        return {
            "pixel_values": self.numbers(prepared[:, 1:].unflatten(-1, (-1, 3))).flatten(-2).to(dtype),
            "pixel_attention_mask": on_device(there, device),
            "spatial_shapes": on_device(shapes, device),
        }

    def numbers(self, pixels: Any) -> Any:  # noqa: ANN401 - tensors
        """Make numbers of bytes (..., 3), scaled, centred and divided in one go."""
        torch = importlib.import_module("torch")
        return torch.addcmul(self.shift, pixels.float(), self.factor)


class _TransformersEncoder(_TransformersImageEncoder):
    """Turns pictures and texts into vectors of one space."""

    def __init__(self, loaded: _LoadedModel, tokens: Tokens, *, lowercase: bool, as_they_are: bool) -> None:
        texts = f"{tokens}{', in small letters' if lowercase else ''}"
        super().__init__(loaded, texts=texts, as_they_are=as_they_are)
        self.tokens = tokens
        if loaded.family.texts == "full" and tokens.keeps_capitals():
            self.caveat = (
                "The tokenizer of this model tells capitals from small letters. SigLIP and SigLIP 2 were taught with "
                "small letters only: unless this one was not, write ?lowercase=true."
            )

    @property
    def logit_scale(self) -> float:
        """What the model multiplies a cosine of its vectors by for a score of its own."""
        return float(self.loaded.network.logit_scale.exp().item())

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; what is longer than the context is cut, and `too_long` says which those are."""

        def forward(rows: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401 - a tensor
            return _pooled(self.loaded.network.get_text_features(**self.columns(rows)))

        vectors = self.tokens.encode(texts, self.batches, forward, dim=self.identity.dim)
        return unit(vectors, where=self.identity.dtype)

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode the tokens of texts in the space of pictures; that of the end, which CLIP pools, is among them."""
        if self.loaded.family.texts != "own":
            raise UsageError("this model gives no vectors of single tokens", where=self.identity.name, expected="CLIP")
        network, tokenizer = self.loaded.network, self.tokens.tokenizer

        def forward(rows: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401 - a tensor
            return network.text_projection(network.text_model(**self.columns(rows)).last_hidden_state)

        special = set(tokenizer.all_special_ids) - {tokenizer.eos_token_id}
        found = token_vectors(self.tokens.groups(texts), self.batches, forward, special)
        return [unit(vectors, where=self.identity.dtype) for vectors in found]

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""
        return self.tokens.too_long(texts)

    def columns(self, rows: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
        """Bring a batch of tokens to the device, by what the model calls ids and mask."""
        return dict(zip(self.tokens.names, on_device(rows, self.loaded.device).unbind(1), strict=True))


class _ClipPatches(_TransformersImageEncoder):
    """Gives the vectors of a picture's patches in the space of texts, one after another in one row."""

    def __init__(self, loaded: _LoadedModel, *, texts: str) -> None:
        super().__init__(loaded, texts=texts)
        sizes = loaded.network.config.vision_config
        self.patches = (int(sizes.image_size) // int(sizes.patch_size)) ** 2
        self.identity = replace(self.identity, dim=self.identity.dim * self.patches)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures; each patch has length one."""
        rows = self.batches.run(self.forward, pictures, dim=self.identity.dim)
        return unit(rows.reshape(-1, self.loaded.dim), where=self.identity.dtype).reshape(rows.shape)

    def forward(self, pictures: Sequence[Prepared]) -> Any:  # noqa: ANN401 - a tensor
        """Run the model over one batch, and bring each patch to where CLIP brings the whole picture."""
        network = self.loaded.network
        seen = network.vision_model(**self.inputs(pictures)).last_hidden_state[:, 1:]
        return network.visual_projection(network.vision_model.post_layernorm(seen)).flatten(1)


def _pooled(answer: Any) -> Any:  # noqa: ANN401 - tensors
    """Take one vector per picture or text from what a model says."""
    return getattr(answer, "pooler_output", answer)


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder of a folder or a hub id."""
    options = spec.read(TransformersOptions)
    needed_package("torch", kind="encoder transformers", extra="embed")
    needed_package("transformers", kind="encoder transformers", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    found = str(read_json(folder.path / "config.json").get("model_type", "no model_type"))
    if found not in _FAMILIES:
        raise UsageError(
            "this kind of model is not known as an encoder", where=str(folder.path / "config.json"),
            expected=f"model_type {' or '.join(_FAMILIES)}", found=found,
            hint="Sentence-transformers are read by sentence:FOLDER, open_clip checkpoints by open_clip:FOLDER.",
        )  # fmt: skip
    family = _FAMILIES[found]
    if family.texts is None and options.lowercase:
        raise UsageError("this model reads no texts", where=str(spec), found="lowercase=true")
    if not family.features and options.give == "features":
        raise UsageError("this model gives vectors of length one only", where=str(spec), found="give=features",
                         expected="CLIP, DINOv2 or DINOv3")  # fmt: skip
    if options.give == "patches" and family.model != "CLIPModel":
        raise UsageError("this model gives no vectors of patches", where=str(spec), expected="CLIP", found=found)
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    settings, file = _picture_settings(folder)
    read = patch_plan if family.patches else picture_plan
    plan = read(settings, processor=family.processor, where=str(file))
    tokenizer, rewrite = load_tokenizer(folder) if family.texts else (None, str)
    network = load_model(folder, family, device=device, dtype=dtype)
    loaded = _LoadedModel(folder, family, network, plan, device, dtype, usual_batch(options, device))
    _check_size(loaded)
    as_they_are = options.give == "features"
    if tokenizer is None:
        return _TransformersImageEncoder(loaded, as_they_are=as_they_are)
    context = min(int(network.config.text_config.max_position_embeddings), int(tokenizer.model_max_length))
    tokens = Tokens(
        tokenizer,
        most=context,
        fill=family.texts == "full",
        rewrite=(lambda text: rewrite(text.lower())) if options.lowercase else rewrite,
    )
    if options.give == "patches":
        return _ClipPatches(loaded, texts=f"{tokens}{', in small letters' if options.lowercase else ''}")
    return _TransformersEncoder(loaded, tokens, lowercase=options.lowercase, as_they_are=as_they_are)


def _check_size(loaded: _LoadedModel) -> None:
    """Make sure that pictures are prepared in the size that the model was made for."""
    plan, config = loaded.plan, loaded.network.config
    if isinstance(plan, PatchPlan):
        made_for, given = int(config.vision_config.patch_size), plan.patch
    elif loaded.family.any_size:
        return
    else:
        side = int(config.vision_config.image_size)
        made_for, given = side, side if plan.size == (side, side) else max(plan.size)
    if made_for != given:
        known = " or ".join(_FAMILIES)
        raise UsageError(
            "pictures are prepared in another size than the model was made for",
            where=str(loaded.folder.path),
            expected=f"{made_for} pixels, as config.json says",
            found=f"{given} pixels, as the preprocessor's file says",
            hint=f"The folder must hold one model ({known}) with its own preprocessor_config.json.",
        )


# Open-vocabulary detectors of transformers (OWL-ViT, OWLv2): how probable it is that a picture shows what is named.


_DETECTABLE = {
    "owlvit": Family("OwlViTForObjectDetection", "OwlViTImageProcessorPil"),
    "owlv2": Family("Owlv2ForObjectDetection", "Owlv2ImageProcessorPil"),
}
_ASKED = "a photo of {}"  # how these models were taught to be asked


class OwlDetector:
    """Compares every place of a picture with every label."""

    def __init__(self, folder: ModelFolder, kind: str, network: Any, *, device: Any, dtype: Any) -> None:  # noqa: ANN401
        """Take a model on its device."""
        transformers = needed_package("transformers", kind="detector owl", extra="embed")
        with quiet("transformers"):
            self.processor = getattr(transformers, _DETECTABLE[kind].processor).from_pretrained(
                folder.path, local_files_only=True
            )
        self.tokenizer, self.rewrite = load_tokenizer(folder)
        self.torch = needed_package("torch", kind="detector owl", extra="embed")
        self.network, self.device, self.dtype = network, device, dtype
        self.name = f"{kind} {folder.digest()[:12]}"

    def probabilities(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> NDArray[np.float64]:
        """Give, for each label, the probability of the place that is most like it."""
        asked = [self.rewrite(_ASKED.format(label)) for label in labels]
        most = self.network.config.text_config.max_position_embeddings
        tokens = self.tokenizer(asked, padding="max_length", max_length=most)
        long = [label for label, ids in zip(labels, tokens["input_ids"], strict=True) if len(ids) > most]
        if long:
            raise UsageError("a label is too long for the detector", expected=f"{most} tokens", found=long[0])
        words = {name: self.torch.as_tensor(part, device=self.device) for name, part in tokens.items()}
        pixels = self.processor(images=picture, return_tensors="pt")["pixel_values"].to(self.device, self.dtype)
        with same_bits():
            found = self.network(pixel_values=pixels, **words)
            best: NDArray[np.float64] = found.logits[0].amax(dim=0).double().sigmoid().cpu().numpy()
        return best


def make_detector(spec: Spec) -> OwlDetector:
    """Make the detector of a folder or a hub id."""
    options = spec.read(TorchOptions)
    needed_package("transformers", kind="detector owl", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    kind = str(read_json(folder.path / "config.json").get("model_type", "no model_type"))
    if kind not in _DETECTABLE:
        expected = f"model_type {' or '.join(_DETECTABLE)}"
        raise UsageError("this is no detector that is read", where=str(folder.path), expected=expected, found=kind)
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    network = load_model(folder, _DETECTABLE[kind], device=device, dtype=dtype)
    return OwlDetector(folder, kind, network, device=device, dtype=dtype)


DETECTORS: Registry[OwlDetector] = Registry(
    "object detector",
    [
        Entry(
            "owl",
            "culturekit.index.models.transformers_encoder:make_detector",
            "OWL-ViT or OWLv2 from a folder or the hub",
            options="culturekit.index.models.torch_device:TorchOptions",
            extra="embed",
            packages=("torch", "transformers"),
        )
    ],
)
