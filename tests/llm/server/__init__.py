"""A server on loopback that speaks the protocols of two providers and fails as it is told."""

from tests.llm.server.answers import Answer, Model
from tests.llm.server.questions import Question
from tests.llm.server.running import RunningServer, running_server, server_process
from tests.llm.server.script import Fault, JobPlan, Prices, Quota, Rule, Script, When, script_from_json

__all__ = [
    "Answer",
    "Fault",
    "JobPlan",
    "Model",
    "Prices",
    "Question",
    "Quota",
    "Rule",
    "RunningServer",
    "Script",
    "When",
    "running_server",
    "script_from_json",
    "server_process",
]
