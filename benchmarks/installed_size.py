"""How large an installation of the core is, in an environment of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

from recording import record

ROOT = Path(__file__).parents[1]
LARGEST = 8


def main() -> None:
    """Install the core into a fresh environment and weigh what came."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        target = next(Path(folder).glob("lib/python*/site-packages"))
        constraints = str(ROOT / "constraints.txt")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "-c", constraints, "--target", str(target)]
        subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
        sizes = {path.name: weigh(path) for path in target.iterdir()}
    rows = sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST]
    record(
        "installed_size",
        title="Installed size of the core",
        command="python benchmarks/installed_size.py",
        table=[
            ["what", "MB"],
            ["everything", f"{sum(sizes.values()) / 1e6:.0f}"],
            ["culturekit itself", f"{sizes['culturekit'] / 1e6:.2f}"],
            *([name, f"{size / 1e6:.0f}"] for name, size in rows),
        ],
    )


def weigh(path: Path) -> int:
    """Add up the files below a path."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
