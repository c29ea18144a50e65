"""The packages that `make gpu` needs beside torch on a machine that reaches no network, in one archive.

`make gpu-packages` runs it where there is a network, and prints the wheels and their sizes. Packed anew they are
smaller: 64 MiB is what may travel to a machine that is lent. The far machine has CPython 3.12 on x86-64 with torch,
torchvision, transformers, numpy, scipy, pillow, safetensors, jinja2, rich, typer, yaml and what these bring.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

__all__ = ["NEEDED", "main"]

NEEDED = (
    "annotated-types", "babel", "diffusers", "importlib-metadata", "isal", "msgspec", "orjson", "polars",
    "polars-runtime-32", "pycountry", "pydantic", "pydantic-core", "typing-inspection",
)  # fmt: skip
"""What culturekit and diffusers import that the far machine has not; each is fetched alone, without what it needs."""

TARGET = ("--python-version", "3.12", "--implementation", "cp", "--only-binary=:all:", "--no-deps")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
MOST = 64 * 2**20
"""Bytes that may travel, the working tree among them."""


def main() -> int:
    """Fetch wheels of the versions that are installed here, and pack what is in them; say how much it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path, help="where to write it: packages.tar.xz")
    archive = parser.parse_args().archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        wheels = fetched(Path(made))
        site = Path(made) / "site"
        for wheel in wheels:
            sys.stdout.write(f"{wheel.stat().st_size / 2**20:7.2f} MiB  {wheel.name}\n")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(site)
        with tarfile.open(archive, "w:xz") as packed_anew:
            packed_anew.add(site, arcname=".")
    size = archive.stat().st_size
    sys.stdout.write(f"{size / 2**20:7.2f} MiB  {archive}, of {MOST / 2**20:.0f} that may travel with the work tree\n")
    return int(size > MOST)


def fetched(folder: Path) -> list[Path]:
    """Fetch a wheel for each package."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    pinned = [f"{name}=={version(name)}" for name in NEEDED]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *TARGET, *platforms, "--dest", str(folder), *pinned]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


if __name__ == "__main__":
    sys.exit(main())
