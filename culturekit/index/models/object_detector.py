"""Open-vocabulary detectors of transformers (OWL-ViT, OWLv2): how probable it is that a picture shows what is named."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.model_files import read_json
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package, same_bits
from culturekit.index.models.torch_device import TorchOptions
from culturekit.index.models.transformers_encoder import Family, load_model, load_tokenizer, quietly
from culturekit.index.weights.weights_identity import ModelFolder, find_model

_FAMILIES = {
    "owlvit": Family("OwlViTForObjectDetection", "OwlViTImageProcessorPil"),
    "owlv2": Family("Owlv2ForObjectDetection", "Owlv2ImageProcessorPil"),
}
_ASKED = "a photo of {}"  # how these models were taught to be asked


class OwlDetector:
    """Compares every place of a picture with every label."""

    def __init__(self, folder: ModelFolder, kind: str, network: Any, *, device: Any, dtype: Any) -> None:  # noqa: ANN401
        """Take a model on its device."""
        transformers = needed_package("transformers", kind="detector owl", extra="embed")
        with quietly():
            self.processor = getattr(transformers, _FAMILIES[kind].processor).from_pretrained(
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


def make(spec: Spec) -> OwlDetector:
    """Make the detector of a folder or a hub id."""
    options = spec.read(TorchOptions)
    needed_package("transformers", kind="detector owl", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    kind = str(read_json(folder.path / "config.json").get("model_type", "no model_type"))
    if kind not in _FAMILIES:
        expected = f"model_type {' or '.join(_FAMILIES)}"
        raise UsageError("this is no detector that is read", where=str(folder.path), expected=expected, found=kind)
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    network = load_model(folder, _FAMILIES[kind], device=device, dtype=dtype)
    return OwlDetector(folder, kind, network, device=device, dtype=dtype)


DETECTORS: Registry[OwlDetector] = Registry(
    "object detector",
    [
        Entry(
            "owl",
            "culturekit.index.models.object_detector:make",
            "OWL-ViT or OWLv2 from a folder or the hub",
            options="culturekit.index.models.torch_device:TorchOptions",
            extra="embed",
            packages=("torch", "transformers"),
        )
    ],
)
