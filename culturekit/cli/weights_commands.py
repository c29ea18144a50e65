"""`culturekit weights`: model weights as files that hold nothing but numbers."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing import show

weights_app = typer.Typer(no_args_is_help=True, help="Model weights as files that hold nothing but numbers.")


@weights_app.callback()
def weights() -> None:
    """Keep `convert` a command of its own while it is the only one."""


@weights_app.command(
    epilog="Example: culturekit weights convert HPS_v2.1_compressed.pt "
    "--sha256 0000000000000000000000000000000000000000000000000000000000000000 --kind hpsv2.1 --out hps.safetensors"
)
def convert(
    file: Annotated[Path, typer.Argument(help="Checkpoint that torch.save wrote.")],
    sha256: Annotated[str, typer.Option(help="SHA-256 the file must have; checked before anything reads it.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, NAME.safetensors.")],
    kind: Annotated[
        str | None, typer.Option(help="What it must be, such as hpsv2.1 or fid-inception. [whatever known kind it is]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make safetensors of a known checkpoint that is a pickle.

    Nothing in the pickle is run.
    """
    from culturekit.index.weights import convert_weights

    converted = convert_weights(file, sha256=sha256, out=out, kind=kind)
    what = " ".join(filter(None, [converted.kind, converted.variant]))
    lines = [
        f"{converted.path}  {what}, {converted.tensors:,} tensors of {converted.numbers:,} numbers",
        f"sha256 {converted.sha256}",
    ]
    if converted.left_out:
        shown = ", ".join(converted.left_out[:8]) + (", ..." if len(converted.left_out) > 8 else "")
        lines.append(f"left out, no tensors: {shown}")
    show(converted, lines, as_json=as_json)
