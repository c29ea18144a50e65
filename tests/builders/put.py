"""Stages that are done where a test says, the models asked by them being those of the test."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from culturekit.builders import asking
from culturekit.core.declared import StageCommand
from culturekit.core.work import Outcome, Work
from culturekit.llm.client import Client, FreeClient


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
    clients = SimpleNamespace(make=lambda spec: client, brought_by=lambda spec: {})
    asked = asking._spec_of(declared.stage)
    with patch.object(asking, "CLIENTS", clients):
        return declared.stage(*inputs, **{asked: client and "scripted", **options}).run(work)
