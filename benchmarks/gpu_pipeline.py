"""An SDXL of the real size with random weights in half precision, in a folder that `diffusers:FOLDER` takes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiny_pipeline import clip_tokenizer

from culturekit.core.torch_places import mend_torchvision

__all__ = ["SMALL", "save_sdxl"]

SMALL: Mapping[str, Any] = {"width": 64, "decoder_width": 32, "texts": (64, 128), "layers": (2, 2)}
"""The same parts, thinner, for a walk without a GPU."""


def save_sdxl(
    folder: Path, *, width: int = 320, decoder_width: int = 128, texts: tuple[int, int] = (768, 1280),
    layers: tuple[int, int] = (12, 32), seed: int = 0,
) -> Path:  # fmt: skip
    """Draw the weights of a denoiser (2.6 billion at the real width), both text encoders and the decoder; 7 GB in all.

    On a GPU they are drawn there, in seconds.
    """
    mend_torchvision()
    import torch
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline

    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    tokenizers = clip_tokenizer(), clip_tokenizer()
    try:
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            first, second = (text_encoder(tokenizers[n], texts[n], layers[n], projected=n == 1) for n in (0, 1))
            denoiser, decoder = denoiser_of(width, texts), decoder_of(decoder_width)
    finally:
        torch.set_default_dtype(before)
    StableDiffusionXLPipeline(
        unet=denoiser, vae=decoder, scheduler=EulerDiscreteScheduler(), tokenizer=tokenizers[0],
        tokenizer_2=tokenizers[1], text_encoder=first, text_encoder_2=second, add_watermarker=False,
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip
    return folder


def denoiser_of(width: int, texts: tuple[int, int]) -> Any:  # noqa: ANN401 - parts of pipelines have no common type
    """Make what takes the noise away."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=128, in_channels=4, out_channels=4, block_out_channels=(width, 2 * width, 4 * width),
        layers_per_block=2, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10), attention_head_dim=(width // 64, width // 32, width // 16),
        cross_attention_dim=sum(texts), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=256, projection_class_embeddings_input_dim=6 * 256 + texts[1],
    )  # fmt: skip


def decoder_of(width: int) -> Any:  # noqa: ANN401
    """Make what turns numbers into pictures, at eight times their side."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(width, 2 * width, 4 * width, 4 * width),
        layers_per_block=2, down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        sample_size=1024, scaling_factor=0.13025,
    )  # fmt: skip


def text_encoder(tokenizer: Any, width: int, layers: int, *, projected: bool) -> Any:  # noqa: ANN401
    """Make a text encoder of CLIP."""
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    config = CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers,
        num_attention_heads=width // 64, projection_dim=width, hidden_act="gelu" if projected else "quick_gelu",
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return (CLIPTextModelWithProjection if projected else CLIPTextModel)(config)
