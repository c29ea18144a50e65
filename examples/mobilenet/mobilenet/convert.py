"""The weights of MobileNetV2 out of the npm package nsfwjs (MIT), into a safetensors file.

npm install --ignore-scripts --prefix pictures nsfwjs@4.4.0
python -m mobilenet.convert pictures/node_modules/nsfwjs mobilenet.safetensors

The package has each weight as a byte, with the least value and the step of its tensor. Node.js, which comes with npm,
opens the bundles; normalisation is folded into the convolutions in front of it.
"""

import argparse
import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.extend import StoredTensor, write_tensors

__all__ = ["convert", "folded", "stored_weights"]

OPEN = """
const folder = process.argv[1] + '/dist/models/mobilenet_v2/';
const { weightsManifest } = require(folder + 'model.min.js');
console.log(JSON.stringify({ manifest: weightsManifest, bytes: require(folder + 'group1-shard1of1.min.js') }));
"""
NORMALISED = {"Conv1": "bn_Conv1", "Conv_1": "Conv_1_bn"}
"""Names of the normalisation after a layer that are not the layer's own with _BN."""

EPSILON = 1e-3

Numbers = NDArray[np.float64]


def convert(package: Path, out: Path) -> None:
    """Write the weights of the convolutions, normalisation folded in."""
    tensors = []
    for name, array in folded(stored_weights(package)).items():
        tensors.append(StoredTensor(name, "F32", array.shape, array.nbytes, partial(array.astype("<f4").tobytes)))
    write_tensors(out, tensors, {"source": "nsfwjs, MobileNetV2", "licence": "MIT"})


def stored_weights(package: Path) -> dict[str, Numbers]:
    """Read every weight of the package."""
    command = ["node", "-e", OPEN, str(package.resolve())]
    bundle = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    content = np.frombuffer(base64.b64decode(bundle["bytes"]), np.uint8)
    found, place = {}, 0
    for entry in (entry for group in bundle["manifest"] for entry in group["weights"]):
        size = int(np.prod(entry["shape"]))
        found[entry["name"]] = plain(content[place : place + size], entry)
        place += size
    if place != len(content):
        raise SystemExit(f"{package}: {len(content)} bytes of weights, and {place} of them are named")
    return found


def plain(content: NDArray[np.uint8], entry: Mapping[str, Any]) -> Numbers:
    """Bring bytes to the numbers that they stand for."""
    steps = entry["quantization"]
    if steps["dtype"] != "uint8":
        raise SystemExit(f"{entry['name']}: expected bytes, found {steps['dtype']}")
    numbers = np.float64(steps["min"]) + np.float64(steps["scale"]) * content.astype(np.float64)
    return np.asarray(numbers.reshape(entry["shape"]))


def folded(weights: Mapping[str, Numbers]) -> dict[str, NDArray[np.float32]]:
    """Fold the normalisation after each convolution into its kernel and a bias."""
    made: dict[str, NDArray[np.float32]] = {}
    kernels = [name.rpartition("/") for name in weights if name.endswith(("/kernel", "/depthwise_kernel"))]
    for layer, _, kind in kernels:
        after = NORMALISED.get(layer, f"{layer}_BN")
        if f"{after}/gamma" not in weights:
            continue  # the classes behind the features
        mean, variance = weights[f"{after}/moving_mean"], weights[f"{after}/moving_variance"]
        factor = weights[f"{after}/gamma"] / np.sqrt(variance + EPSILON)
        kernel = weights[f"{layer}/{kind}"]
        by_channel = factor[:, np.newaxis] if kind == "depthwise_kernel" else factor
        made[f"{layer}.weight"] = (kernel * by_channel).astype(np.float32)
        made[f"{layer}.bias"] = (weights[f"{after}/beta"] - mean * factor).astype(np.float32)
    return made


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="node_modules/nsfwjs")
    parser.add_argument("out", type=Path, help="safetensors file to write")
    given = parser.parse_args()
    convert(given.package, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
