"""Options that several commands share, so that they mean the same everywhere."""

import os
from pathlib import Path
from typing import Annotated

import typer

from culturekit.core.choices import SEED, ExportChoice


def use_prices(ctx: typer.Context, path: Path | None) -> Path | None:
    """Let the prices of a file win until the command ends; processes that it starts see them too."""
    if path is None or ctx.resilient_parsing:
        return path
    before = os.environ.get(PRICES)

    def as_before() -> None:
        if before is None:
            os.environ.pop(PRICES, None)
        else:
            os.environ[PRICES] = before

    ctx.call_on_close(as_before)
    os.environ[PRICES] = str(path.absolute())
    return path


PRICES = "CULTUREKIT_PRICES"
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", callback=use_prices, help="YAML file of prices that win over all others. [$CULTUREKIT_PRICES]"
    ),
]
Out = Annotated[
    Path, typer.Option("--out", help="Folder to write; reused if finished with the same inputs and options.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes to use; the result never depends on it. [all cores]")
]
EngineSpec = Annotated[
    str,
    typer.Option(
        "--engine", help="Who does the work: local, dask, or the address of a dask scheduler, as tcp://HOST:PORT."
    ),
]
Also = Annotated[
    ExportChoice | None, typer.Option("--also", help="Write each table in this form too, beside its Parquet file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and progress as JSON lines.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run in the same folder instead of refusing.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help=SEED)]
GoOn = Annotated[
    bool,
    typer.Option(
        "--go-on", help="Ask to the end although most replies cannot be used, or although a model is said to be shut."
    ),
]
