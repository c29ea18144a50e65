"""A tiny text-to-image pipeline with random weights, in a folder that `diffusers:FOLDER` takes.

It has every part that a real one has, tokenizers included, and makes pictures of nothing in a fraction of a second: to
try a set-up before a download of gigabytes, and to test with. `python benchmarks/tiny_pipeline.py FOLDER --kind flux`.
"""

# ruff: noqa: ANN401 - parts of pipelines have no common type
import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from culturekit.core.torch_places import mend_torchvision

__all__ = ["KINDS", "save_pipeline"]

WIDTH = 32
"""Numbers in a token's vector, everywhere."""

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"()-"


def byte_letters() -> list[str]:
    """Give a printable sign for each byte, as byte-level tokenizers write them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in plain)
    return [chr(byte) for byte in plain] + [chr(256 + place) for place, _ in enumerate(others)]


def clip_tokenizer() -> Any:
    """Make a tokenizer whose words are single bytes."""
    from transformers import CLIPTokenizer

    letters = byte_letters()
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={word: place for place, word in enumerate(words)}, merges=[], model_max_length=77)


def t5_tokenizer() -> Any:
    """Make a tokenizer whose words are single letters."""
    from transformers import T5TokenizerFast

    words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), ("\u2581", -2.0), *((one, -3.0) for one in LETTERS)]
    return T5TokenizerFast(vocab=words, extra_ids=0)


def clip_encoder(tokenizer: Any, *, projected: bool) -> Any:
    """Make a text encoder of CLIP."""
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    config = CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, intermediate_size=37, projection_dim=WIDTH,
        num_hidden_layers=3, num_attention_heads=4, hidden_act="gelu",
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return (CLIPTextModelWithProjection if projected else CLIPTextModel)(config)


def t5_encoder(tokenizer: Any) -> Any:
    """Make a text encoder of T5."""
    from transformers import T5Config, T5EncoderModel

    return T5EncoderModel(
        T5Config(vocab_size=len(tokenizer), d_model=WIDTH, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    )


def decoder(channels: int, *, quantised: bool = True) -> Any:
    """Make what turns numbers into pictures, at twice their side."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        in_channels=3, out_channels=3, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=8,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=channels, use_quant_conv=quantised, use_post_quant_conv=quantised, sample_size=64,
        shift_factor=None if quantised else 0.06, scaling_factor=0.18 if quantised else 1.5,
    )  # fmt: skip


def unet(width: int, *, numbers: int) -> Any:
    """Make what takes the noise away in SDXL; `numbers` are the sizes and crops, or the score, that it is told."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=32, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=8, transformer_layers_per_block=(1, 2), cross_attention_dim=width,
        projection_class_embeddings_input_dim=8 * numbers + WIDTH, norm_num_groups=8,
    )  # fmt: skip


def sdxl() -> Any:
    """Make an SDXL: two text encoders."""
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline

    first, second = clip_tokenizer(), clip_tokenizer()
    return StableDiffusionXLPipeline(
        unet=unet(2 * WIDTH, numbers=6), vae=decoder(4), scheduler=EulerDiscreteScheduler(),
        tokenizer=first, tokenizer_2=second, text_encoder=clip_encoder(first, projected=False),
        text_encoder_2=clip_encoder(second, projected=True), add_watermarker=False,
    )  # fmt: skip


def sd() -> Any:
    """Make a Stable Diffusion 1: one text encoder."""
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

    tokenizer = clip_tokenizer()
    denoiser = UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=32, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=2, cross_attention_dim=WIDTH, norm_num_groups=8,
    )  # fmt: skip
    return StableDiffusionPipeline(
        unet=denoiser, vae=decoder(4), scheduler=DDIMScheduler(), tokenizer=tokenizer,
        text_encoder=clip_encoder(tokenizer, projected=False), safety_checker=None, feature_extractor=None,
        requires_safety_checker=False,
    )  # fmt: skip


def refiner() -> Any:
    """Make the refiner of an SDXL: one text encoder, and a score for beauty."""
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLImg2ImgPipeline

    tokenizer = clip_tokenizer()
    return StableDiffusionXLImg2ImgPipeline(
        unet=unet(WIDTH, numbers=5), vae=decoder(4), scheduler=EulerDiscreteScheduler(),
        tokenizer=None, text_encoder=None, tokenizer_2=tokenizer,
        text_encoder_2=clip_encoder(tokenizer, projected=True),
        requires_aesthetics_score=True, add_watermarker=False,
    )  # fmt: skip


def sd3() -> Any:
    """Make an SD 3: three text encoders."""
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline

    tokenizers = clip_tokenizer(), clip_tokenizer(), t5_tokenizer()
    transformer = SD3Transformer2DModel(
        sample_size=32, patch_size=1, in_channels=4, num_layers=1, attention_head_dim=8, num_attention_heads=4,
        caption_projection_dim=WIDTH, joint_attention_dim=WIDTH, pooled_projection_dim=2 * WIDTH, out_channels=4,
    )  # fmt: skip
    return StableDiffusion3Pipeline(
        transformer=transformer, vae=decoder(4, quantised=False), scheduler=FlowMatchEulerDiscreteScheduler(),
        tokenizer=tokenizers[0], tokenizer_2=tokenizers[1], tokenizer_3=tokenizers[2],
        text_encoder=clip_encoder(tokenizers[0], projected=True),
        text_encoder_2=clip_encoder(tokenizers[1], projected=True), text_encoder_3=t5_encoder(tokenizers[2]),
    )  # fmt: skip


def flux() -> Any:
    """Make a FLUX: guidance is a number that it was trained to be told, and negative prompts need another."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    tokenizers = clip_tokenizer(), t5_tokenizer()
    transformer = FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=WIDTH, pooled_projection_dim=WIDTH, axes_dims_rope=(4, 4, 8), guidance_embeds=True,
    )  # fmt: skip
    return FluxPipeline(
        transformer=transformer, vae=decoder(4, quantised=False), scheduler=FlowMatchEulerDiscreteScheduler(),
        tokenizer=tokenizers[0], tokenizer_2=tokenizers[1], text_encoder=clip_encoder(tokenizers[0], projected=False),
        text_encoder_2=t5_encoder(tokenizers[1]),
    )  # fmt: skip


def qwen_tokenizer() -> Any:
    """Make a tokenizer whose words are single bytes, with the signs that stand around what people and models say."""
    from transformers import Qwen2Tokenizer

    said = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    words = [*byte_letters(), *said]
    tokenizer = Qwen2Tokenizer(vocab={word: place for place, word in enumerate(words)}, merges=[])
    tokenizer.add_special_tokens({"additional_special_tokens": list(said[1:])})
    return tokenizer


def qwen_encoder(tokenizer: Any) -> Any:
    """Make the language model that reads prompts; its eyes are there, and never open."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    size = {"hidden_size": WIDTH // 2, "intermediate_size": WIDTH // 2}
    text = {
        **size, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "rope_theta": 1e6,
        "vocab_size": len(tokenizer), "rope_scaling": {"mrope_section": [1, 1, 2], "rope_type": "default"},
    }  # fmt: skip
    eyes = {**size, "depth": 1, "num_heads": 2, "out_hidden_size": WIDTH // 2}
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=eyes))


def qwen() -> Any:
    """Make a Qwen-Image: a language model reads the prompt, and negative prompts need true guidance."""
    from diffusers import (
        AutoencoderKLQwenImage,
        FlowMatchEulerDiscreteScheduler,
        QwenImagePipeline,
        QwenImageTransformer2DModel,
    )

    tokenizer, channels = qwen_tokenizer(), 4
    transformer = QwenImageTransformer2DModel(
        patch_size=2, in_channels=4 * channels, out_channels=channels, num_layers=2, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=WIDTH // 2, axes_dims_rope=(8, 4, 4),
    )  # fmt: skip
    vae = AutoencoderKLQwenImage(
        base_dim=6 * channels, z_dim=channels, dim_mult=[1, 2, 4], num_res_blocks=1, temperal_downsample=[False, True],
        latents_mean=[0.0] * channels, latents_std=[1.0] * channels,
    )  # fmt: skip
    return QwenImagePipeline(
        transformer=transformer, vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(), tokenizer=tokenizer,
        text_encoder=qwen_encoder(tokenizer),
    )  # fmt: skip


def chat_tokenizer() -> Any:
    """Make a tokenizer of bytes that writes conversations the way that Qwen does."""
    tokenizer = qwen_tokenizer()
    tokenizer.chat_template = (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer


def language_model(tokenizer: Any, *, layers: int) -> Any:
    """Make a language model of Qwen 3 that reads prompts."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=WIDTH // 2, intermediate_size=WIDTH // 2, num_hidden_layers=layers,
            num_attention_heads=2, num_key_value_heads=2, head_dim=8,
        )
    )  # fmt: skip


def flux2_parts(*, guidance: bool) -> dict[str, Any]:
    """Make the parts that all FLUX.2 have; three layers of the text encoder are read, side by side."""
    from diffusers import AutoencoderKLFlux2, FlowMatchEulerDiscreteScheduler, Flux2Transformer2DModel

    transformer = Flux2Transformer2DModel(
        in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=3 * WIDTH // 2, timestep_guidance_channels=16, axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=guidance,
    )  # fmt: skip
    vae = AutoencoderKLFlux2(
        block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=8, latent_channels=4, sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    return {"transformer": transformer, "vae": vae, "scheduler": FlowMatchEulerDiscreteScheduler()}


def flux2() -> Any:
    """Make a FLUX.2-dev: what it calls its tokenizer is a processor, which reads pictures too."""
    from diffusers import Flux2Pipeline
    from transformers import Mistral3Config, Mistral3ForConditionalGeneration, PixtralImageProcessor, PixtralProcessor

    tokenizer = qwen_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["[IMG]", "[IMG_BREAK]", "[IMG_END]"]})
    size = {"hidden_size": WIDTH // 2, "intermediate_size": WIDTH // 2, "num_attention_heads": 2, "head_dim": 8}
    text = {
        **size, "model_type": "mistral", "num_hidden_layers": 30, "num_key_value_heads": 2,
        "vocab_size": len(tokenizer),
    }  # fmt: skip
    eyes = {**size, "model_type": "pixtral", "num_hidden_layers": 1, "image_size": 32, "patch_size": 8}
    image_token = tokenizer.convert_tokens_to_ids("[IMG]")
    encoder = Mistral3ForConditionalGeneration(
        Mistral3Config(text_config=text, vision_config=eyes, image_token_index=image_token)
    )
    template = (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
        "{{ part['text'] }}{% endfor %}<|im_end|>{% endfor %}"
    )
    processor = PixtralProcessor(PixtralImageProcessor(patch_size=8), tokenizer, patch_size=8, chat_template=template)
    return Flux2Pipeline(text_encoder=encoder, tokenizer=processor, **flux2_parts(guidance=True))


def klein(*, distilled: bool) -> Any:
    """Make a FLUX.2-klein; a distilled one does not heed guidance."""
    from diffusers import Flux2KleinPipeline

    tokenizer = chat_tokenizer()
    return Flux2KleinPipeline(
        text_encoder=language_model(tokenizer, layers=27), tokenizer=tokenizer, is_distilled=distilled,
        **flux2_parts(guidance=False),
    )  # fmt: skip


def z_image() -> Any:
    """Make a Z-Image: a language model reads the prompt as what a user says."""
    from diffusers import FlowMatchEulerDiscreteScheduler, ZImagePipeline, ZImageTransformer2DModel

    tokenizer = chat_tokenizer()
    transformer = ZImageTransformer2DModel(
        in_channels=4, dim=WIDTH, n_layers=1, n_refiner_layers=1, n_heads=2, n_kv_heads=2, cap_feat_dim=WIDTH // 2,
        axes_dims=[8, 4, 4], axes_lens=[1024, 64, 64],
    )  # fmt: skip
    return ZImagePipeline(
        transformer=transformer, vae=decoder(4, quantised=False), scheduler=FlowMatchEulerDiscreteScheduler(),
        tokenizer=tokenizer, text_encoder=language_model(tokenizer, layers=2),
    )  # fmt: skip


def hunyuan(*, distilled: bool) -> Any:
    """Make a HunyuanImage: guidance is a part of the pipeline, or a number that a distilled one was trained with."""
    from diffusers import (
        AdaptiveProjectedMixGuidance,
        AutoencoderKLHunyuanImage,
        FlowMatchEulerDiscreteScheduler,
        HunyuanImagePipeline,
        HunyuanImageTransformer2DModel,
    )
    from transformers import ByT5Tokenizer

    tokenizer, glyphs = qwen_tokenizer(), ByT5Tokenizer()
    transformer = HunyuanImageTransformer2DModel(
        in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=16, num_layers=1, num_single_layers=1,
        num_refiner_layers=1, guidance_embeds=distilled, text_embed_dim=WIDTH // 2, text_embed_2_dim=WIDTH,
        rope_axes_dim=(8, 8),
    )  # fmt: skip
    vae = AutoencoderKLHunyuanImage(
        in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(32, 32), layers_per_block=1,
        spatial_compression_ratio=2, sample_size=64, scaling_factor=0.75,
    )  # fmt: skip
    guider = None if distilled else AdaptiveProjectedMixGuidance(adaptive_projected_guidance_start_step=1)
    return HunyuanImagePipeline(
        transformer=transformer, vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(), tokenizer=tokenizer,
        text_encoder=qwen_encoder(tokenizer), tokenizer_2=glyphs, text_encoder_2=t5_encoder(glyphs), guider=guider,
    )  # fmt: skip


def sana() -> Any:
    """Make a SANA: a decoder of 32 times the side, and sizes of its own that pictures are cut from."""
    from diffusers import AutoencoderDC, DPMSolverMultistepScheduler, SanaPipeline, SanaTransformer2DModel
    from transformers import Gemma2Config, Gemma2Model

    tokenizer = qwen_tokenizer()
    transformer = SanaTransformer2DModel(
        in_channels=4, out_channels=4, num_layers=1, num_attention_heads=2, attention_head_dim=8,
        num_cross_attention_heads=2, cross_attention_head_dim=8, cross_attention_dim=WIDTH // 2,
        caption_channels=WIDTH // 2, sample_size=16,
    )  # fmt: skip
    blocks = {"block_out_channels": (8,) * 6, "layers_per_block": (1,) * 6, "qkv_multiscales": ((),) * 6}
    both = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in blocks.items()}
    text = Gemma2Config(
        vocab_size=len(tokenizer), hidden_size=WIDTH // 2, intermediate_size=WIDTH // 2, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, head_dim=8,
    )  # fmt: skip
    return SanaPipeline(
        transformer=transformer, vae=AutoencoderDC(latent_channels=4, attention_head_dim=8, **both),
        scheduler=DPMSolverMultistepScheduler(use_flow_sigmas=True, prediction_type="flow_prediction"),
        tokenizer=tokenizer, text_encoder=Gemma2Model(text),
    )  # fmt: skip


KINDS: Mapping[str, Callable[[], Any]] = {
    "flux": flux, "flux2": flux2, "flux2-klein": partial(klein, distilled=True),
    "flux2-klein-base": partial(klein, distilled=False), "hunyuan": partial(hunyuan, distilled=False),
    "hunyuan-distilled": partial(hunyuan, distilled=True), "qwen": qwen, "sana": sana, "sd": sd, "sd3": sd3,
    "sdxl": sdxl, "sdxl-refiner": refiner, "z-image": z_image,
}  # fmt: skip


def save_pipeline(folder: Path, kind: str, *, seed: int = 0) -> Path:
    """Save a tiny pipeline with the random weights of a seed."""
    import torch

    mend_torchvision()
    torch.manual_seed(seed)
    KINDS[kind]().save_pretrained(folder, safe_serialization=True)
    return folder


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=sorted(KINDS), default="sdxl")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.stdout.write(f"{save_pipeline(given.folder, given.kind, seed=given.seed)}\n")


if __name__ == "__main__":
    main()
