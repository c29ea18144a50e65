"""`culturekit index`: artifacts as vectors, and images mapped to them."""

import typer

from culturekit.cli.index.build_index_command import build_index_command
from culturekit.cli.index.diagnose_commands import diagnose_command, shuffle_command
from culturekit.cli.index.embed_command import embed_command
from culturekit.cli.index.map_command import map_command
from culturekit.cli.index.vector_commands import append_command, compact_command, remove_command

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
index_app.command(
    "diagnose",
    epilog="Example: culturekit index diagnose --index index --matches matches/matches.parquet --out diagnosis",
)(diagnose_command)
index_app.command("shuffle", epilog="Example: culturekit index shuffle --images images/images.parquet --out shuffled")(
    shuffle_command
)
index_app.command(
    "append", epilog="Example: culturekit index append --index index --references more/images.parquet --out index-2"
)(append_command)
index_app.command("remove", epilog="Example: culturekit index remove --index index --artifact Q42 --out index-2")(
    remove_command
)
index_app.command("compact", epilog="Example: culturekit index compact --index index-2 --out index-3")(compact_command)
