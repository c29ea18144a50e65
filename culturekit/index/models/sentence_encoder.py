"""Sentence-transformers, such as LaBSE, from a folder: texts to unit vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors, digest_of_files, read_json_list
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package, quiet
from culturekit.index.embedding.embedding import unit
from culturekit.index.encoder import EncoderIdentity, TextEncoder, TooLong, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, on_device, token_vectors, usual_batch
from culturekit.index.models.transformers_encoder import Tokens
from culturekit.index.weights import PICKLES, ModelFolder, find_model, no_weights

_PREFIX = "sentence_transformers."
_TOP = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")


class _SentenceEncoder:
    """Turns texts into vectors, with the pooling and the layers that the folder lists."""

    caveat = ""
    tokens_apart = True

    def __init__(self, folder: ModelFolder, network: Any, *, device: Any, dtype: Any, batch: int) -> None:  # noqa: ANN401
        self.network = network
        self.device = device
        self.batches = Batches(batch)
        self.prompt = str(network.prompts.get(network.default_prompt_name) or "") if network.default_prompt_name else ""
        first = network[0]
        self.lowercase = bool(getattr(first, "do_lower_case", False))
        most = int(network.max_seq_length or network.tokenizer.model_max_length)
        self.tokens = Tokens(network.tokenizer, most=most, fill=False)
        ask = getattr(network, "get_embedding_dimension", None) or network.get_sentence_embedding_dimension
        self.identity = EncoderIdentity(
            name="sentence",
            weights=digest_of_files(_files_of(folder.path), root=folder.path),
            revision=folder.revision,
            preprocessing=f"{self.tokens}" + (f", each after {self.prompt!r}" if self.prompt else ""),
            dtype=str(dtype).removeprefix("torch."),
            dim=int(ask()),
        )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; what is longer than the context is cut, and `too_long` says which those are."""
        vectors = self.tokens.encode(self.written(texts), self.batches, self.forward, dim=self.identity.dim)
        return unit(vectors, where=self.identity.dtype)

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode the tokens of texts, in the space of the transformer, before pooling and the layers after it."""
        groups, special = self.tokens.groups(self.written(texts)), self.network.tokenizer.all_special_ids
        found = token_vectors(groups, self.batches, lambda rows: self.encoded(rows)["token_embeddings"], special)
        return [unit(vectors, where=self.identity.dtype) for vectors in found]

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""
        return self.tokens.too_long(self.written(texts))

    def forward(self, rows: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401 - a tensor
        """Run the model over one batch of tokens."""
        return self.encoded(rows)["sentence_embedding"]

    def encoded(self, rows: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401 - tensors
        """Give everything that the model says of one batch of tokens."""
        columns = on_device(rows, self.device).unbind(1)
        return self.network(dict(zip(self.tokens.names, columns, strict=True)))

    def written(self, texts: Sequence[str]) -> list[str]:
        """Write texts as the model was taught: after its prompt, without space around, in small letters if so."""
        stripped = [(self.prompt + text).strip() for text in texts]
        return [text.lower() for text in stripped] if self.lowercase else stripped


def _modules_of(folder: Path) -> list[Path]:
    """List the folders of a model's parts; parts that are not sentence-transformers' own are refused."""
    listed = read_json_list(folder / "modules.json")
    if not listed or not str(listed[0].get("type")).endswith(".Transformer"):
        raise UsageError("a sentence encoder begins with a transformer", where=str(folder / "modules.json"))
    for part in listed:
        if not str(part.get("type")).startswith(_PREFIX):
            raise UsageError(
                "a part of this model is code of its own, which is never run here", where=str(folder / "modules.json"),
                found=str(part.get("type")), expected=f"{_PREFIX}...",
            )  # fmt: skip
    places = [(folder / str(part.get("path", ""))).resolve() for part in listed]
    outside = [path for path in places if not path.is_relative_to(folder.resolve())]
    if outside:
        raise IntegrityError("a part of the model lies outside its folder", where=str(folder), found=str(outside[0]))
    return [folder / path.relative_to(folder.resolve()) for path in places]


def _files_of(folder: Path) -> list[Path]:
    """List what decides a vector: the lists at the top, and the weights and settings of every part."""
    files = {folder / name for name in _TOP if (folder / name).is_file()}
    first, *others = _modules_of(folder)
    files.update(ModelFolder(first, "").files())
    files.update(first / name for name in _TOP if (first / name).is_file())
    for module in others:
        weights = module / "model.safetensors"
        if not weights.is_file() and any(found for pattern in PICKLES for found in module.glob(pattern)):
            raise no_weights(module)
        files.update(path for path in (weights, module / "config.json") if path.is_file())
    return sorted(files)


def make(spec: Spec) -> TextEncoder:
    """Make the encoder of a folder or a hub id."""
    options = spec.read(TorchOptions)
    package = needed_package("sentence_transformers", kind="encoder sentence", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    files = _files_of(folder.path)
    check_safetensors([path for path in files if path.suffix == ".safetensors"])
    try:
        with quiet("transformers"):
            network = package.SentenceTransformer(
                str(folder.path),
                device=str(device),
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"dtype": dtype, "use_safetensors": True},
            )
    except (OSError, ValueError, RuntimeError, TypeError, KeyError, ImportError) as error:
        raise IntegrityError(
            "the model cannot be loaded", where=str(folder.path), found=str(error).strip().partition("\n")[0]
        ) from error
    if network.default_prompt_name and not all(getattr(part, "include_prompt", True) for part in network):
        raise UsageError("a model that leaves its prompt out of the pooling is not read here", where=str(folder.path))
    return _SentenceEncoder(
        folder, network.to(dtype).eval(), device=device, dtype=dtype, batch=usual_batch(options, device)
    )
