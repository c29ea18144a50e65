"""`culturekit index`: artifacts as vectors, and images mapped to them."""

import typer

from culturekit.cli.build_index_command import build_index_command
from culturekit.cli.embed_command import embed_command
from culturekit.cli.map_command import map_command

__all__ = ["index_app"]

index_app = typer.Typer(no_args_is_help=True, help="The index: artifacts as vectors, and images mapped to them.")

index_app.command(
    "build",
    epilog="Example: culturekit index build --cspace cspace/cspace.parquet --encoder embedded "
    "--references references/images.parquet --out index",
)(build_index_command)
index_app.command(
    "embed", epilog="Example: culturekit index embed --images images/images.parquet --encoder embedded --out vectors"
)(embed_command)
index_app.command(
    "map", epilog="Example: culturekit index map --index index --images images/images.parquet --out matches"
)(map_command)
