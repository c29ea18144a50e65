"""Tiny models of open_clip with random weights, as folders that an encoder reads."""

import json
from pathlib import Path
from typing import Any

from culturekit.core.torch_places import mend_torchvision

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
