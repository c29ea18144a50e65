"""Pages of closed lists, of options behind a SPEC and of packages; docs/generate.py writes them."""

import ast
import dataclasses
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from culturekit.builders.popularity import PageviewOptions, ResultOptions
from culturekit.core import errors
from culturekit.core.pictures.picture_files import LIMITS, REASONS, PictureLimits
from culturekit.generation import services
from culturekit.generation.diffusion import diffusers_folder as diffusers_options
from culturekit.generation.folder import folder_run as folder_options
from culturekit.generation.image_options import GoogleImageOptions, OpenAIImageOptions, ServiceImageOptions
from culturekit.generation.simulated import simulated_backend
from culturekit.index.models import inception_encoder, open_clip_encoder
from culturekit.index.models.torch_device import TorchOptions
from culturekit.index.models.transformers_encoder import TransformersOptions
from culturekit.index.raters import picture_spread
from culturekit.index.raters.preference_quality import HpsOptions
from culturekit.llm import reply_schema
from culturekit.llm.clients.client_options import GoogleOptions, LocalOptions, OpenAIOptions, ReplayOptions
from culturekit.llm.prices import price_list
from culturekit.llm.replies import CODES as REPLY_CODES
from culturekit.llm.reply_schema import ABILITIES, BOUNDS, COUNTS, LENGTHS, PATTERN
from culturekit.llm.rows import OUTCOMES
from culturekit.release.audit_file import CODES as AUDIT_CODES
from culturekit.release.card_content import CODES as CARD_CODES
from culturekit.release.card_content import SourceTexts, is_passage

ROOT = Path(__file__).parents[1]
NOTE = "<!-- written by docs/generate.py; change the code, then run `make docs` -->\n"


def as_text(value: object) -> str:
    """Write a cell."""
    text = "<br>".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def codes_page() -> str:
    """Give every word of a closed list that tables, logs and checks use, with its meaning."""
    card = [(code, found.says, found.fix, "4" if found.damage else "1") for code, found in CARD_CODES.items()]
    lists: dict[str, tuple[Sequence[str], Sequence[tuple[str, ...]]]] = {
        "How a question ends": (("outcome", "when"), list(OUTCOMES.items())),
        "Why a reply is no answer": (("code", "what the model is told"), list(REPLY_CODES.items())),
        "What a schema target takes": (TARGET_COLUMNS, list(target_rows())),
        "Why there is no picture": (("reason", "means"), list(REASONS.items())),
        "What an audit finds": (
            ("code", "severity", "means", "what `--fix` does"),
            [(code.name, code.severity, code.says, code.mend) for code in AUDIT_CODES],
        ),
        "What the check of a card finds": (("code", "means", "what to do", "exit code"), card),
    }
    limits = ", ".join(f"`{name}` {limit:,}" for name, limit in dataclasses.asdict(LIMITS).items())
    leads = {
        "What the check of a card finds": f"`long-prose`: {body_of(is_passage)}\n\n"
        f"`source-prose`: {text_of(SourceTexts)}",
        "Why a reply is no answer": body_of(reply_schema),
        "Why there is no picture": f"{text_of(PictureLimits)}\n\nThe limits: {limits}.",
    }
    parts = ["# Codes\n", NOTE, "Closed lists, as they stand in tables, logs, messages and `--json`.\n"]
    parts.append(f"## Exit codes\n\n{body_of(errors)}\n")
    for title, (columns, rows) in lists.items():
        lead = [f"{leads[title]}\n"] if title in leads else []
        head = [f"## {title}\n", *lead, f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
        cells = [f"| `{name}` | {' | '.join(map(as_text, row))} |" for name, *row in rows]
        parts.append("\n".join([*head, *cells]) + "\n")
    return "\n".join(parts)


TARGET_COLUMNS = (
    "target",
    "`format`",
    "a field with a default",
    "a choice among numbers",
    "a type within itself",
    "`dict[str, ...]`",
    "enforced: lengths of texts",
    "patterns",
    "lengths of lists",
    "bounds of numbers",
    "levels, properties, values",
)


def target_rows() -> Iterator[tuple[str, ...]]:
    """Give what each target of a schema can take."""
    for name, able in ABILITIES.items():
        has = (able.optional, able.whole_choices, able.recursion, able.open_maps)
        enforced = (able.words >= words for words in (LENGTHS, PATTERN, COUNTS))
        bounds = able.words >= BOUNDS
        yield (
            name,
            ", ".join(sorted(able.formats)),
            *("yes" if each else "no" for each in (*has, *enforced)),
            "no" if not bounds else "yes" if able.bounds_on_fractions else "of whole numbers",
            f"{able.depth}, {able.properties:,}, {able.choices:,}",
        )


SPECS: dict[str, type] = {
    "Language models: openai": OpenAIOptions,
    "Language models: google": GoogleOptions,
    "Language models: local": LocalOptions,
    "Language models: replay": ReplayOptions,
    "Images: diffusers": diffusers_options.Options,
    "Images: folder": folder_options.Options,
    "Images: google": GoogleImageOptions,
    "Images: openai": OpenAIImageOptions,
    "Images: service": ServiceImageOptions,
    "Images: simulated": simulated_backend.Options,
    "Popularity: pageviews": PageviewOptions,
    "Popularity: google_cse": ResultOptions,
    "Encoders: transformers": TransformersOptions,
    "Encoders: open_clip": open_clip_encoder.Options,
    "Encoders: inception": inception_encoder.Options,
    "Encoders: sentences": TorchOptions,
    "Quality: hpsv2": HpsOptions,
    "Unlikeness: lpips": picture_spread.Options,
}


def specs_page() -> str:
    """Give the options of every SPEC."""
    parts = [
        "# Options of SPECs\n",
        NOTE,
        "A SPEC is `name[:target][?key=value&key=value]`, in single quotes on a command line. An option without a\n"
        "default is not sent, or is what the model has by itself.\n",
    ]
    for title, options in SPECS.items():
        rows = "\n".join(f"| `{name}` | {' | '.join(map(as_text, row))} |" for name, *row in option_rows(options))
        table = f"| option | takes | default | meaning |\n|---|---|---|---|\n{rows}\n"
        parts.append(f"## {title}\n\n{text_of(options)}\n\n{table}")
    parts.append(f"## Rows of bought images\n\n{body_of(services)}\n")
    prices = "\n".join(f"| {' | '.join(row)} |" for row in picture_prices())
    parts.append(f"## Dollars an image\n\n| model | quality | by size |\n|---|---|---|\n{prices}\n")
    return "\n".join(parts)


def picture_prices() -> Iterator[tuple[str, str, str]]:
    """Give what an image costs by the dated list, without its prompt."""
    for provider in price_list().providers.values():
        for model, qualities in provider.images.items():
            for quality, sizes in qualities.items():
                dollars = provider.models[model].output / 1_000_000
                yield model, quality, ", ".join(f"{size}: {tokens * dollars:.4f}" for size, tokens in sizes.items())


def text_of(described: type[Any]) -> str:
    """Give the docstring of a class without its attributes."""
    return inspect.cleandoc(described.__doc__ or "").partition("Attributes:")[0].strip()


def body_of(described: ModuleType | Callable[..., Any]) -> str:
    """Give the docstring of a module or a function without its first line."""
    return inspect.cleandoc(described.__doc__ or "").partition("\n")[2].strip()


def option_rows(options: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Give a row per option; each has its meaning under `Attributes:` of its class or of one above."""
    meanings: dict[str, str] = {}
    for above in reversed(options.__mro__[:-1]):
        described = inspect.cleandoc(above.__doc__ or "").partition("Attributes:\n")[2]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", described, re.MULTILINE):
            meanings[name] = " ".join(text.split())
    hints = get_type_hints(options, include_extras=True)
    for field in dataclasses.fields(options):
        stated = str(field.default).lower() if isinstance(field.default, bool) else field.default
        default = "" if stated in (None, "", 0) else f"`{stated}`"
        yield field.name, values(hints[field.name]), default, meanings[field.name]


def values(hint: Any) -> str:  # noqa: ANN401 - a type as it is annotated
    """Name what a type takes."""
    if get_origin(hint) is Annotated:
        limits = next(each for each in get_args(hint)[1:] if isinstance(each, msgspec.Meta))
        signs = (("above", limits.gt), ("at least", limits.ge), ("below", limits.lt), ("at most", limits.le))
        bounds = " and ".join(f"{sign} {limit:,}" for sign, limit in signs if limit is not None)
        return f"{values(get_args(hint)[0])} {bounds}".strip()
    if get_origin(hint) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(hint) if each)
    parts = [values(part) for part in get_args(hint) if part is not type(None)]
    return " or ".join(parts) or {bool: "`true`, `false`", int: "whole number", float: "number"}.get(hint, "text")


def packages_page() -> str:
    """Give what each package holds, from the top layer of the import contract down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    parts = [
        "# Packages\n",
        NOTE,
        "A package imports only from lines below its own; packages on one line do not see each other.\n",
        *(f"{place}. {' '.join(f'`{name}`' for name in names_of(layer))}" for place, layer in enumerate(layers, 1)),
        "\n| package | holds |\n|---|---|",
    ]
    for name in (name for layer in layers for name in names_of(layer)):
        place = ROOT / "culturekit" / name
        inside = [path.parent.name for path in sorted(place.glob("*/__init__.py"))]
        parts.extend(
            f"| `{each}` | {as_text(first_line(each))} |" for each in (name, *(f"{name}.{sub}" for sub in inside))
        )
    return "\n".join(parts) + "\n"


def names_of(layer: str) -> list[str]:
    """Give the packages of one layer of the contract."""
    return [name.strip(" ()") for name in layer.split("|")]


def first_line(name: str) -> str:
    """Give the first line of the docstring of a package or module."""
    place = ROOT.joinpath("culturekit", *name.split("."))
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").partition("\n")[0]
