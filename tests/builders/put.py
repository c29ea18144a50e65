"""Stages that are done where a test says, the models asked by them being those of the test."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from culturekit.builders.asking import spec_of
from culturekit.core.declared import StageCommand
from culturekit.core.stage import Outcome, Work
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.clients.clients import CLIENTS


def beside(work: Work, name: str) -> Work:
    """Work in another folder."""
    out = work.out.parent / name
    out.mkdir()
    return replace(work, out=out)


def do(declared: StageCommand, work: Work, *inputs: Any, **options: Any) -> Outcome:
    """Do a stage."""
    return declared.stage(*inputs, **options).run(work)


def put(
    declared: StageCommand, work: Work, client: Client | FreeClient | None, *inputs: Any, **options: Any
) -> Outcome:
    """Do a stage that asks a model, or nobody."""
    asked = spec_of(declared.stage)
    with patch.multiple(CLIENTS, make=lambda spec: client, brought_by=lambda spec: {}):
        return declared.stage(*inputs, **{asked: client and "scripted", **options}).run(work)
