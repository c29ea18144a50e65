"""`culturekit card`: the data card of a release, begun, built and checked."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson, Out, Wait
from culturekit.cli.showing import show
from culturekit.cli.stage_command import run_one
from culturekit.core.errors import counted

card_app = typer.Typer(no_args_is_help=True, help="Data cards: half by hand, half from the data, and checked.")


@card_app.command(epilog="Example: culturekit card init data_cards/my-release --name my-release")
def init(
    folder: Annotated[Path, typer.Argument(help="Folder for the hand-written half; it must not be there yet.")],
    name: Annotated[str, typer.Option(help="Short name of the release, for file names and addresses.")],
    as_json: AsJson = False,
) -> None:
    """Begin a hand-written half of a card.

    Every field and section, with what belongs there.
    """
    from culturekit.release.card_hand import write_skeleton

    written = write_skeleton(folder, name)
    show(written, map(str, written), as_json=as_json)


@card_app.command(epilog="Example: culturekit card build runs/cube/cspace --hand data_cards/cspace --out card")
def build(
    release: Annotated[Path, typer.Argument(help="Finished folder of cspace release or prompts build.")],
    hand: Annotated[Path, typer.Option(help="Folder of the hand-written half; cspace is the shipped one of CSpace.")],
    out: Out,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write the card of a release.

    Data by split, README, datasheet, data card, Croissant, checksums.
    """
    from culturekit.config.checks import hand_path
    from culturekit.core.digests import RUN_RECORD, read_manifest
    from culturekit.release.card_build import card_stage

    run_one(card_stage(release, hand_path(str(hand))), out, wait=wait, as_json=as_json)
    (out / RUN_RECORD).unlink(missing_ok=True)  # it names this machine, and the folder is to be published
    manifest = read_manifest(out)
    notes = {} if manifest is None else manifest.notes
    for what, names in notes.items():
        typer.echo(f"{what}: {', '.join(names)}", err=True)


@card_app.command(epilog="Example: culturekit card check card --source saved/culturalatlas")
def check(
    folder: Annotated[Path, typer.Argument(help="Folder that card build wrote.")],
    source: Annotated[
        list[Path] | None,
        typer.Option(help="Text, HTML or wikitext that must not be in the card, as a file or a folder. Repeatable."),
    ] = None,
    hand: Annotated[
        Path | None, typer.Option(help="The hand-written half; the card must be built from it as it is now.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the card anew from its data.

    Leave with 1 where it differs, with 4 where bytes are damaged.
    """
    from culturekit.release.card_build import check_card
    from culturekit.release.card_content import exit_code

    findings = check_card(folder, sources=source or (), hand=hand)
    lines = (
        f"{each.file}: {each.code}: expected {each.expected}, found {each.found.removesuffix('.')}. {each.fix}"
        for each in findings
    )
    show([finding.as_data() for finding in findings], lines, as_json=as_json)
    typer.echo(f"{counted(len(findings), 'findings')} in {folder}", err=True)
    if findings:
        raise typer.Exit(exit_code(findings))
