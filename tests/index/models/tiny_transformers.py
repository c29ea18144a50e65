"""Tiny models of random weights, of every family that is read, saved as real ones are; tokenizers made here."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from culturekit.core.torch_places import mend_torchvision, needed_package

__all__ = ["MAKERS", "SIDE", "make_sentence", "packages"]

SIDE = 32

LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}

COLOURS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}


def packages() -> tuple[Any, Any, Any]:
    """Import torch, transformers and tokenizers; torch keeps to one thread."""
    torch, transformers, tokenizers = (
        needed_package(name, kind="test", extra="embed") for name in ("torch", "transformers", "tokenizers")
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch, transformers, tokenizers


def save(folder: Path, model: Any, *parts: Any) -> None:
    logging = packages()[1].utils.logging
    logging.disable_progress_bar()
    model.save_pretrained(folder, safe_serialization=True)
    for part in parts:
        part.save_pretrained(folder)


def bytes_of_clip() -> Any:
    _, transformers, tokenizers = packages()
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = [*alphabet, *(letter + "</w>" for letter in alphabet), "<|startoftext|>", "<|endoftext|>"]
    return transformers.CLIPTokenizer(vocab={word: number for number, word in enumerate(words)}, merges=[])


def pieces_of_siglip(*, lower: bool = True) -> Any:
    """A unigram tokenizer of letters: small ones only, no punctuation, filled up with its end to 64 tokens."""
    _, transformers, tokenizers = packages()
    letters = [*map(chr, range(32, 127)), "é", "中", "▁", "▁a"]
    pieces = [("</s>", 0.0), ("<unk>", 0.0), *((letter, -1.0 - number / 9) for number, letter in enumerate(letters))]
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=1))
    make = tokenizers.normalizers
    steps = [make.Replace(tokenizers.Regex(wrong), right) for wrong, right in ((r"[!-/:-@\[-`{-~]", ""), (r"\s+", " "))]
    steps.append(make.Strip())
    if lower:
        steps.insert(0, make.Lowercase())
    inner.normalizer = make.Sequence(steps)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    inner.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="</s>", pad_token="</s>", unk_token="<unk>", model_max_length=64,
        model_input_names=["input_ids"],
    )  # fmt: skip


def pieces_of_gemma() -> Any:
    """SigLIP 2's tokenizer, of the kind that Gemma has: byte-pair pieces with a fallback to bytes."""
    _, transformers, _ = packages()
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    words = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *map(chr, range(33, 127)), "▁"]
    vocabulary = {word: number for number, word in enumerate(words)}
    return transformers.Siglip2Tokenizer(vocab=vocabulary, merges=[], model_max_length=64, padding_side="right")


def make_clip(folder: Path, *, image_size: int = SIDE) -> None:
    _, transformers, _ = packages()
    tokenizer = bytes_of_clip()
    end = tokenizer.eos_token_id
    words = {"vocab_size": len(tokenizer), "eos_token_id": end, "bos_token_id": end - 1, "pad_token_id": end}
    config = transformers.CLIPConfig(
        text_config=LAYERS | words | {"projection_dim": 24},
        vision_config=LAYERS | {"image_size": image_size, "patch_size": 8, "projection_dim": 24},
        projection_dim=24,
    )
    processor = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    save(folder, transformers.CLIPModel(config), transformers.CLIPProcessor(processor, tokenizer))


def make_siglip(folder: Path, *, lower: bool = True) -> None:
    """SigLIP, and SigLIP 2 of fixed resolution, which is the same model."""
    _, transformers, _ = packages()
    tokenizer = pieces_of_siglip(lower=lower)
    config = transformers.SiglipConfig(
        text_config=LAYERS | {"vocab_size": len(tokenizer), "projection_size": 32, "max_position_embeddings": 64},
        vision_config=LAYERS | {"image_size": SIDE, "patch_size": 8},
    )
    processor = transformers.SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    save(folder, transformers.SiglipModel(config), processor, tokenizer)


def make_siglip2(folder: Path) -> None:
    _, transformers, _ = packages()
    tokenizer = pieces_of_gemma()
    config = transformers.Siglip2Config(
        text_config=LAYERS | {"vocab_size": len(tokenizer), "projection_size": 32, "max_position_embeddings": 64},
        vision_config=LAYERS | {"patch_size": 8, "num_patches": 16},
    )
    processor = transformers.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=20)
    save(folder, transformers.Siglip2Model(config), processor, tokenizer)


def make_dinov2(folder: Path, *, registers: bool = False) -> None:
    """DINOv2, made for larger pictures than it is given, as the released ones are."""
    _, transformers, _ = packages()
    name = "Dinov2WithRegisters" if registers else "Dinov2"
    settings: Mapping[str, Any] = {**LAYERS, "image_size": 64, "patch_size": 8}
    config = getattr(transformers, f"{name}Config")(**settings)
    processor = transformers.BitImageProcessorPil(
        size={"shortest_edge": 40}, crop_size={"height": SIDE, "width": SIDE}, **COLOURS
    )
    save(folder, getattr(transformers, f"{name}Model")(config), processor)


def make_dinov2_with_registers(folder: Path) -> None:
    make_dinov2(folder, registers=True)


def make_dinov3(folder: Path) -> None:
    """DINOv3; transformers prepares its pictures with torchvision only."""
    _, transformers, _ = packages()
    settings: Mapping[str, Any] = {**LAYERS, "image_size": 64, "patch_size": 8, "num_register_tokens": 2}
    processor = transformers.DINOv3ViTImageProcessor(size={"height": SIDE, "width": SIDE})
    save(folder, transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**settings)), processor)


def make_dinov3_convnext(folder: Path) -> None:
    _, transformers, _ = packages()
    config = transformers.DINOv3ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
    processor = transformers.DINOv3ViTImageProcessor(size={"height": SIDE, "width": SIDE})
    save(folder, transformers.DINOv3ConvNextModel(config), processor)


def make_sentence(folder: Path, *, length: int = 20) -> None:
    """A model like LaBSE: BERT, its first token, a dense layer, unit length."""
    torch, transformers, _ = packages()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(chr, range(33, 127)), *(f"##{chr(c)}" for c in range(33, 127))]
    (folder / "bert").mkdir(parents=True)
    tokenizer = transformers.BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=64, **LAYERS)
    save(folder / "bert", transformers.BertModel(config), tokenizer)
    parts = needed_package("sentence_transformers", kind="test", extra="embed")
    models = parts.sentence_transformer.modules
    first = models.Transformer(str(folder / "bert"), max_seq_length=length)
    layers = [
        first, models.Pooling(32, pooling_mode="cls"), models.Dense(32, 24, activation_function=torch.nn.Tanh()),
        models.Normalize(),
    ]  # fmt: skip
    parts.SentenceTransformer(modules=layers, device="cpu").save(str(folder / "whole"), create_model_card=False)


MAKERS: Mapping[str, Callable[[Path], None]] = {
    "clip": make_clip, "siglip": make_siglip, "siglip2": make_siglip2, "dinov2": make_dinov2,
    "dinov2_with_registers": make_dinov2_with_registers, "dinov3_convnext": make_dinov3_convnext,
    "dinov3_vit": make_dinov3,
}  # fmt: skip

TINY: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 12, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


def tiny_folder(folder: Path, *, preprocessing: dict[str, Any] | None = None, seed: int = 0, **settings: Any) -> Path:
    """Write a model as open_clip's own tools do; `settings` replace parts of its configuration."""
    mend_torchvision()
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    config = {**TINY, **settings}
    copy = json.loads(json.dumps(config))
    model = open_clip.CustomTextCLIP(**copy) if copy.pop("custom_text", False) else open_clip.CLIP(**copy)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: t.contiguous() for name, t in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    whole = {"model_cfg": config, "preprocess_cfg": preprocessing or {}}
    (folder / "open_clip_config.json").write_text(json.dumps(whole), encoding="utf-8")
    return folder
