"""The models of transformers that can encode: how each is recognised, loaded from its folder, and asked."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from culturekit.errors import CultureKitError, IntegrityError, MissingDependency, UsageError
from culturekit.index.models.torch_device import needed_package
from culturekit.index.models.transformers_texts import Rewrite, canonical
from culturekit.index.weights.weights_identity import ModelFolder, check_safetensors, read_json, weight_files
from culturekit.version import install_line

__all__ = ["FAMILIES", "Family", "family_of", "load_model", "load_tokenizer", "picture_settings", "quietly"]

VOCABULARIES = ("vocab.json", "vocab.txt", "spiece.model", "tokenizer.model")

TextLength: TypeAlias = Literal["own", "full"]


@dataclass(frozen=True, slots=True)
class Family:
    """Models of one `model_type`: their class, their usual image processor, and whether and how they read texts.

    `texts` is "full" where a text is always filled up to the whole context, "own" where it need not be, and None
    where the model reads pictures only. `patches` is true where pictures keep their proportions. `features` names the
    vectors of a model of pictures as they are, before they are brought to length one.
    """

    model: str
    processor: str
    texts: TextLength | None = None
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


FAMILIES: Mapping[str, Family] = {
    "clip": Family("CLIPModel", "CLIPImageProcessor", "own"),
    "siglip": Family("SiglipModel", "SiglipImageProcessor", "full"),
    "siglip2": Family("Siglip2Model", "Siglip2ImageProcessor", "full", patches=True),
    "dinov2": Family("Dinov2Model", "BitImageProcessor", any_size=True, features="DINOv2"),
    "dinov2_with_registers": Family("Dinov2WithRegistersModel", "BitImageProcessor", any_size=True, features="DINOv2"),
    "dinov3_vit": Family("DINOv3ViTModel", "DINOv3ViTImageProcessor", any_size=True, features="DINOv3"),
    "dinov3_convnext": Family("DINOv3ConvNextModel", "DINOv3ViTImageProcessor", any_size=True, features="DINOv3"),
}


def family_of(folder: ModelFolder) -> Family:
    """Recognise a model by its config.json."""
    found = str(read_json(folder.path / "config.json").get("model_type", "no model_type"))
    if found not in FAMILIES:
        raise UsageError(
            "this kind of model is not known as an encoder",
            where=str(folder.path / "config.json"),
            expected=f"model_type {' or '.join(FAMILIES)}",
            found=found,
            hint="Sentence-transformers are read by sentence:FOLDER, open_clip checkpoints by open_clip:FOLDER.",
        )
    return FAMILIES[found]


def picture_settings(folder: ModelFolder) -> tuple[dict[str, Any], Path]:
    """Read what a folder says of its pictures, and in which file."""
    own, shared = folder.path / "preprocessor_config.json", folder.path / "processor_config.json"
    if not own.is_file() and shared.is_file():
        settings = read_json(shared).get("image_processor")
        if isinstance(settings, dict):
            return settings, shared
    return read_json(own), own


@contextmanager
def quietly() -> Iterator[None]:
    """Keep transformers from drawing bars and from remarks on what is checked here anyway."""
    from_package = needed_package("transformers", kind="encoder", extra="embed").utils.logging
    level, bars = from_package.get_verbosity(), from_package.is_progress_bar_enabled()
    from_package.set_verbosity_error()
    from_package.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        from_package.set_verbosity(level)
        if bars:
            from_package.enable_progress_bar()


def load_model(folder: ModelFolder, family: Family, *, device: Any, dtype: Any) -> Any:  # noqa: ANN401 - torch types
    """Load a model from its safetensors; no weight is made up, no code of the folder is run."""
    transformers = needed_package("transformers", kind="encoder transformers", extra="embed")
    check_safetensors(weight_files(folder.path))
    try:
        with quietly():
            model, report = getattr(transformers, family.model).from_pretrained(
                folder.path,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=dtype,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
        raise IntegrityError(
            "the model cannot be loaded: its weights and its config.json do not belong together",
            where=str(folder.path),
            found=str(error).strip().partition("\n")[0],
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise IntegrityError(
            "weights are missing, and would be made up at random",
            where=str(folder.path),
            found=f"{len(missing)} missing, such as {missing[0]}",
        )
    return model.to(device).eval()


def load_tokenizer(folder: ModelFolder) -> tuple[Any, Rewrite]:
    """Load a tokenizer from its folder alone, with what is to be done to a text first.

    SigLIP's own tokenizer needs sentencepiece. Where the same pieces are in tokenizer.json they are read from there,
    on every machine alike, after the rewriting that SigLIP's tokenizer does in Python.
    """
    transformers = needed_package("transformers", kind="encoder transformers", extra="embed")
    whole, settings = folder.path / "tokenizer.json", folder.path / "tokenizer_config.json"
    if not whole.is_file() and not any((folder.path / name).is_file() for name in VOCABULARIES):
        raise UsageError("the tokenizer is missing", where=str(folder.path), expected="tokenizer.json")
    named = str(read_json(settings).get("tokenizer_class", "")) if settings.is_file() else ""
    of_siglip = named.removesuffix("Fast") == "SiglipTokenizer"
    kind = transformers.PreTrainedTokenizerFast if of_siglip and whole.is_file() else transformers.AutoTokenizer
    try:
        with quietly():
            tokenizer = kind.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # which tokenizers raises itself
        raise unloaded_tokenizer(folder, error) from error
    return tokenizer, canonical if of_siglip else str


def unloaded_tokenizer(folder: ModelFolder, error: BaseException) -> CultureKitError:
    """Say why a tokenizer was not loaded."""
    found = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError) and "sentencepiece" in found.lower():
        return MissingDependency(
            "this tokenizer needs the package sentencepiece, which is not installed",
            where=str(folder.path),
            hint=f"Install it with: {install_line(packages='sentencepiece protobuf')}",
        )
    return IntegrityError("the tokenizer cannot be loaded", where=str(folder.path), found=found)
