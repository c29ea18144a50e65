"""A server on loopback that speaks the protocols of OpenAI and Gemini, and fails as it is told.

A server for a block, in a thread of this process:

    with running_server(Script(rules=(Rule(Fault("busy", hint="retry-after-ms", wait=0.5), times=3),))) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="any", max_retries=0)
        other = genai.Client(api_key="any", http_options={"base_url": server.google_url, "api_version": "v1beta"})
        ...
        server.stats()["bought_twice"], server.records()[0].early

`server_process(...)` does the same in a process of its own, as does

    python -m tests.llm.server --port 0 --script script.json --model module:function

whose first line is its address; it outlives the clients it serves.

Paths are the `ROUTES` in `running.py`; `GET /stats` and `/stats/records` tell what was counted, `PUT /script` starts
another script.

The first rule of a `Script` whose `When` fits a request decides, and the request goes wrong as its `Fault` says:
`script.FAULT_KINDS`. A batch job goes on by being looked at, so that no test waits.

Which row a request is about. The first JSON object with an `id` in the user's messages; objects inside the strings of
another do not count, so no label can pass for another row.

What the model says. A value that fits the schema sent: `id` echoed, a `quote` taken from the data, all else drawn by a
hash of row, seed, model and place. A function passed as `model` may answer instead, with a text or an `Answer`.

What the counts mean. A reply is billed when the work is done, also when the client has left by then, as the services
do; `delivered` are the replies handed over whole, so a client's ledger equals `delivered` and `batch`, to the token.
`bought` counts replies a client could use, by the hash of what was asked; `bought_twice` those bought again. `early`
counts requests for a row that came before the end of the last hint given for that row; `early_model` for any row of
the model, where requests that were under way when the hint was given count too. After a kill, `server.settled()` waits
until everything that the dead had asked for is counted.
"""

from tests.llm.server.answers import Answer, Model, Question
from tests.llm.server.running import RunningServer, running_server, server_process
from tests.llm.server.script import Fault, JobPlan, Rule, Script, When
from tests.llm.server.service import Record

__all__ = [
    "Answer", "Fault", "JobPlan", "Model", "Question", "Record", "Rule", "RunningServer", "Script",
    "When", "running_server", "server_process",
]  # fmt: skip
