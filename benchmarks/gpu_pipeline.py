"""An SDXL of the real size with random weights in half precision, in a folder that `diffusers:FOLDER` takes."""

from pathlib import Path

from tiny_pipeline import clip_tokenizer

__all__ = ["save_real_sdxl"]


def save_real_sdxl(folder: Path, *, seed: int = 0) -> Path:
    """Draw 2.6 billion weights of a denoiser, and those of both text encoders and the decoder; 7 GB in all.

    On a GPU they are drawn there, in seconds.
    """
    import torch
    from diffusers import AutoencoderKL, EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            denoiser = UNet2DConditionModel(
                sample_size=128, in_channels=4, out_channels=4, block_out_channels=(320, 640, 1280),
                layers_per_block=2, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                transformer_layers_per_block=(1, 2, 10), attention_head_dim=(5, 10, 20), cross_attention_dim=2048,
                use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
                projection_class_embeddings_input_dim=6 * 256 + 1280,
            )  # fmt: skip
            decoder = AutoencoderKL(
                in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(128, 256, 512, 512),
                layers_per_block=2, down_block_types=("DownEncoderBlock2D",) * 4,
                up_block_types=("UpDecoderBlock2D",) * 4, sample_size=1024, scaling_factor=0.13025,
            )  # fmt: skip
            tokenizers = clip_tokenizer(), clip_tokenizer()
            ids = {"bos_token_id": tokenizers[0].bos_token_id, "eos_token_id": tokenizers[0].eos_token_id,
                   "pad_token_id": tokenizers[0].pad_token_id, "vocab_size": len(tokenizers[0])}  # fmt: skip
            first = CLIPTextModel(
                CLIPTextConfig(**ids, hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
                               num_attention_heads=12, projection_dim=768)
            )  # fmt: skip
            second = CLIPTextModelWithProjection(
                CLIPTextConfig(**ids, hidden_size=1280, intermediate_size=5120, num_hidden_layers=32,
                               num_attention_heads=20, projection_dim=1280, hidden_act="gelu")
            )  # fmt: skip
    finally:
        torch.set_default_dtype(before)
    StableDiffusionXLPipeline(
        unet=denoiser, vae=decoder, scheduler=EulerDiscreteScheduler(), tokenizer=tokenizers[0],
        tokenizer_2=tokenizers[1], text_encoder=first, text_encoder_2=second, add_watermarker=False,
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip
    return folder
