"""All commands under one name."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli import (
    annotate_commands,
    audit_command,
    card_commands,
    complete_command,
    diff_command,
    doctor_command,
    generate_command,
    index_commands,
    init_command,
    kg_commands,
    llm_commands,
    look_commands,
    metric_commands,
    quality_command,
    questions_commands,
    review_commands,
    root_commands,
    run_commands,
    space_commands,
    tag_command,
    verify_command,
    vqascore_command,
    weights_commands,
)
from culturekit.cli.log_lines import StderrLines
from culturekit.cli.replacing import add_replace_option
from culturekit.cli.scores.app import score_app
from culturekit.version import VERSION

__all__ = ["app"]

app = typer.Typer(
    name="culturekit",
    help="Measure how well text-to-image models know the world's cultures, with evidence for every number.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def show_version(value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(VERSION)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done, on stderr.")] = False,
    countries_file: Annotated[
        Path | None, typer.Option(help="YAML file of countries that are added to the shipped ones, or replace them.")
    ] = None,
) -> None:
    """Set up what all commands share."""
    lines = StderrLines(as_json="--json" in sys.argv)
    logging.basicConfig(handlers=[lines], level=logging.DEBUG if verbose else logging.WARNING)
    if countries_file is not None:
        from culturekit.kg.countries import use_countries

        use_countries(countries_file)


app.command(epilog="Example: culturekit demo")(run_commands.demo)
app.command(epilog="Example: culturekit run recipes/cube.yaml --until cspace")(run_commands.run)
app.command(
    epilog="Example: culturekit init pictures --cspace cspace.parquet --prompts prompts.parquet "
    "--references references --encoder embedded"
)(init_command.init)
app.command(epilog="Example: culturekit plan recipes/cube.yaml")(run_commands.plan)
app.command(
    epilog="Example: culturekit generate --backend 'simulated?temperature=2' --prompts prompts/prompts.parquet "
    "--repeats 50 --slots 8 --out images"
)(generate_command.generate)
app.command(
    epilog="Example: culturekit tag --images images/images.parquet --llm 'openai:gpt-4o-mini' "
    "--cspace cspace/cspace.parquet --out tags --budget 20"
)(tag_command.tag)
app.command(
    epilog="Example: culturekit quality --images images/images.parquet --scorer clipscore:transformers:clip "
    "--prompts prompts/prompts.parquet --out quality"
)(quality_command.quality)
app.command(
    epilog="Example: culturekit vqascore --images images/images.parquet --prompts prompts/prompts.parquet "
    "--llm 'openai:gpt-4o-mini' --out vqascore --budget 20"
)(vqascore_command.vqascore)
app.command(epilog="Example: culturekit report runs/cube --out page")(run_commands.report)
app.command(epilog="Example: culturekit audit cube_1k.json --fix mended.json")(audit_command.audit)
app.command(epilog="Example: culturekit trace 'runs/cube?metric=vs&model=mirage&concept=cuisine&kernel=artifact'")(
    look_commands.trace
)
app.command(epilog="Example: culturekit verify runs/cube")(verify_command.verify)
app.command(epilog="Example: culturekit doctor")(doctor_command.doctor)
space_commands.cspace_app.command(
    "complete",
    epilog="Example: culturekit cspace complete --kept kept/kept.parquet --candidates candidates/candidates.parquet "
    "--graph graph --roots cuisine --llm 'openai:gpt-4o-mini' --out completion --budget 20",
)(complete_command.complete_command)
space_commands.cspace_app.command(epilog="Example: culturekit cspace diff runs/2025 runs/2026 --out changes")(
    diff_command.diff
)
space_commands.cspace_app.add_typer(review_commands.review_app, name="review")
app.add_typer(kg_commands.app, name="kg")
app.add_typer(root_commands.app, name="roots")
app.add_typer(space_commands.cspace_app, name="cspace")
app.add_typer(space_commands.prompts_app, name="prompts")
app.add_typer(questions_commands.questions_app, name="questions")
app.add_typer(index_commands.index_app, name="index")
app.add_typer(score_app, name="score")
app.add_typer(card_commands.card_app, name="card")
app.add_typer(annotate_commands.annotate_app, name="annotate")
app.add_typer(llm_commands.llm_app, name="llm")
app.add_typer(weights_commands.weights_app, name="weights")
app.add_typer(metric_commands.metrics_app, name="metrics")
app.add_typer(look_commands.config_app, name="config")
add_replace_option(app)
