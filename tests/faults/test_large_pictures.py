"""Pictures as large as are read at all are read, each in a process of its own, in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MOST_MEMORY = 512
SIDES = (8000, 6250)

KINDS = {
    "bmp": ("P", "BMP", {}),
    "gif": ("P", "GIF", {}),
    "jpeg": ("RGB", "JPEG", {}),
    "jpeg cmyk": ("CMYK", "JPEG", {}),
    "jpeg cmyk progressive": ("CMYK", "JPEG", {"progressive": True, "subsampling": 0}),
    "jpeg progressive": ("RGB", "JPEG", {"progressive": True}),
    "jpeg progressive, full colour": ("RGB", "JPEG", {"progressive": True, "subsampling": 0}),
    "jpeg turned": ("RGB", "JPEG", {"turned": 6}),
    "png": ("RGB", "PNG", {"compress_level": 1}),
    "png 16 bits": ("I;16", "PNG", {"compress_level": 1}),
    "png alpha": ("RGBA", "PNG", {"compress_level": 1}),
    "png grey alpha": ("LA", "PNG", {"compress_level": 1}),
    "png palette": ("P", "PNG", {"compress_level": 1}),
    "png turned": ("RGBA", "PNG", {"compress_level": 1, "turned": 7}),
    "tiff 16 bits": ("I;16", "TIFF", {}),
    "tiff cmyk": ("CMYK", "TIFF", {"compression": "tiff_adobe_deflate"}),
    "tiff float": ("F", "TIFF", {"compression": "tiff_adobe_deflate"}),
    "tiff in one strip": ("RGBA", "TIFF", {"compression": "tiff_adobe_deflate", "strip_size": 1 << 30}),
    "tiff lab": ("LAB", "TIFF", {"compression": "tiff_adobe_deflate"}),
    "tiff turned": ("RGB", "TIFF", {"compression": "tiff_adobe_deflate", "turned": 5}),
    "webp": ("RGB", "WEBP", {"method": 0}),
    "webp of 24 million": ("RGBA", "WEBP", {"method": 0}),
    "webp of 24 million, lossless": ("RGBA", "WEBP", {"method": 0, "lossless": True, "quality": 0}),
}

WRITE = """
import json, sys
import numpy as np
from PIL import Image, TiffImagePlugin
path, mode, form, how, (width, height) = json.loads(sys.argv[1])
Image.MAX_IMAGE_PIXELS = None
down, across = np.mgrid[0:height:1, 0:width:1].astype(np.uint16)
grey = ((across // 5 + down // 3) % 256).astype(np.uint8)
del down, across
if mode == "I;16":
    picture = Image.fromarray(grey.astype(np.uint16) * 257)
elif mode == "F":
    picture = Image.fromarray(grey.astype(np.float32))
elif mode == "P":
    picture = Image.fromarray(grey).convert("P")
else:
    bands = Image.new(mode, (1, 1)).getbands()
    picture = Image.merge(mode, [Image.fromarray(np.roll(grey, 40 * band, 1)) for band in range(len(bands))])
if turned := how.pop("turned", 0):
    exif = Image.Exif()
    exif[274] = turned
    how["exif"] = exif
TiffImagePlugin.STRIP_SIZE = how.pop("strip_size", TiffImagePlugin.STRIP_SIZE)
picture.save(path, form, **how)
"""

READ = """
import json, sys
from pathlib import Path
import polars
from culturekit.core.pictures.picture_reading import NoPicture, read_inside
from tests.peak_memory import peak_mebibytes
path = Path(sys.argv[1])
found = read_inside(path.parent, path.name)
peak = peak_mebibytes()
what = [found.reason, found.detail] if isinstance(found, NoPicture) else ["read", str(found.pixels.shape)]
print(json.dumps([peak, *what]))
"""


def peak_of(kind: str, folder: Path) -> tuple[float, str, str]:
    """Write and read a picture of a kind; give the most memory in MB that the reader held, and what it found."""
    mode, form, how = KINDS[kind]
    path = folder / "large"
    sides = (6000, 4000) if "24 million" in kind else SIDES
    subprocess.run([sys.executable, "-c", WRITE, json.dumps([str(path), mode, form, how, sides])], check=True)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True, cwd=ROOT)
    peak, outcome, detail = json.loads(done.stdout)
    return peak, outcome, detail


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_pictures_take_no_more_memory_than_allowed(kind: str, tmp_path: Path) -> None:
    peak, outcome, _ = peak_of(kind, tmp_path)
    assert outcome in {"read", "picture too costly to decode"}
    assert peak <= MOST_MEMORY
