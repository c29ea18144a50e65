"""All commands under one name."""

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.version import VERSION


def at(place: str, example: str = "") -> CommandAt:
    """Say where a command is, or a group of commands, which has no example."""
    return CommandAt(f"culturekit.cli.{place}", example)


COMMANDS = {
    "demo": at("run_commands:demo"),
    "run": at("run_commands:run", "cube --until cspace"),
    "init": at(
        "init_command:init",
        "pictures --cspace cspace.parquet --prompts prompts.parquet --references references --encoder embedded",
    ),
    "plan": at("run_commands:plan", "cube"),
    "generate": at(
        "generate_command:generate",
        "--backend 'simulated?temperature=2' --prompts prompts/prompts.parquet --repeats 50 --slots 8 --out images",
    ),
    "tag": CommandAt("culturekit.builders.judging.geo_tag:tag"),
    "judge": CommandAt("culturekit.builders.judging.image_judge:judge_own"),
    "judge extract": CommandAt("culturekit.builders.judging.scene_judge:extract"),
    "judge likert": CommandAt("culturekit.builders.judging.scene_judge:likert"),
    "judge stereotypes": CommandAt("culturekit.builders.judging.scene_judge:stereotypes_shown"),
    "quality": CommandAt("culturekit.index.raters.quality:QUALITY"),
    "vqascore": CommandAt("culturekit.builders.judging.image_judge:vqascore"),
    "report": at("run_commands:report", "runs/cube --out page"),
    "site": at("run_commands:site", "runs/cube --out site"),
    "publish": at("run_commands:publish", "runs/cube --to hub:USER/NAME"),
    "audit": at("audit_command:audit", "cube_1k.json --fix mended.json"),
    "audit plan": at("audit_plan_command:audit_plan_command", "runs/cube --width 0.05"),
    "trace": at("trace_command:trace", "'runs/cube?metric=vs&model=mirage&concept=cuisine&kernel=artifact'"),
    "verify": at("verify_command:verify", "runs/cube"),
    "doctor": at("doctor_command:doctor"),
    "plugins": at("doctor_command:plugins_command"),
    "kg": at("groups:kg"),
    "roots": at("root_commands:app"),
    "cspace": at("groups:cspace"),
    "prompts": at("groups:prompts"),
    "questions": at("groups:questions"),
    "select": CommandAt("culturekit.builders.captions.pairs:select"),
    "select export": CommandAt("culturekit.builders.captions.pairs:export"),
    "finetune": at("finetune_command:finetune", "--pairs pairs --model diffusers:sdxl-base --size 1024 --out tuned"),
    "references collect": CommandAt("culturekit.builders.photographs:collect"),
    "references choose": CommandAt("culturekit.builders.judging.image_judge:choose"),
    "activities": at("groups:activities"),
    "descriptors": at("groups:descriptors"),
    "triplets": CommandAt("culturekit.recipes.inclusion.people:triplets_of"),
    "captions": at("groups:captions"),
    "index": at("groups:index"),
    "score": at("score_app:score_app"),
    "card": at("card_commands:card_app"),
    "annotate": at("annotate_commands:annotate_app"),
    "llm": at("llm_commands:llm_app"),
    "weights": at("weights_commands:weights_app"),
    "metrics": at("score_app:metrics_app"),
    "config": at("config_command:config_app"),
}

WIDEST = 100  # columns of help, where the terminal has as many; Click stops at 80, which cuts descriptions

app = typer.Typer(
    name="culturekit",
    help="Measure how well text-to-image models know the world's cultures, with evidence for every number.",
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"max_content_width": WIDEST}, cls=lazy_group("", COMMANDS),
)  # fmt: skip


def show_version(value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(VERSION)
        raise typer.Exit


def use_named(path: Path | None) -> Path | None:
    """Use the plugins of a file before the command is looked for, which one of them may bring."""
    if path is not None:
        from culturekit.config.load import use_plugins_in

        use_plugins_in(path)
    return path


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done, on stderr.")] = False,
    countries_file: Annotated[
        Path | None,
        typer.Option(help="YAML file of countries beside the shipped ones, or in their place; `world`: all countries."),
    ] = None,
    plugins: Annotated[
        Path | None,
        typer.Option(callback=use_named, help="YAML file, such as a recipe, whose key plugins names code to use."),
    ] = None,
) -> None:
    """Set up what all commands share."""
    lines = StderrLines(as_json="--json" in sys.argv)
    logging.basicConfig(handlers=[lines], level=logging.DEBUG if verbose else logging.WARNING)
    if countries_file is not None:
        from culturekit.kg.countries import use_countries

        use_countries(countries_file)


class StderrLines(logging.Handler):
    """Writes to stderr as it is at the time, so that lines come out above a bar."""

    def __init__(self, *, as_json: bool) -> None:
        """Choose the kind of lines."""
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))
        self.as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        level, text = record.levelname, self.format(record)
        line = json.dumps({"level": level.lower(), "said": text}) if self.as_json else f"{level}: {text}"
        print(line, file=sys.stderr, flush=True)
