"""What the command line makes of failures that nothing before it explained."""

import json
import logging
import subprocess
import sys

import polars as pl
import pytest

from culturekit import cli
from culturekit.cli import app as commands
from culturekit.cli.app import StderrLines

RECORD = logging.LogRecord("culturekit", logging.WARNING, "", 0, "%s: server does not answer", ("m",), None)


def test_what_is_logged_is_a_line_that_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    StderrLines(as_json=False).emit(RECORD)
    assert capsys.readouterr() == ("", "WARNING: m: server does not answer\n")


def test_beside_json_it_is_a_line_that_machines_read(capsys: pytest.CaptureFixture[str]) -> None:
    StderrLines(as_json=True).emit(RECORD)
    assert json.loads(capsys.readouterr().err) == {"level": "warning", "said": "m: server does not answer"}


def test_the_set_up_of_logging_leaves_the_form_alone() -> None:
    logger, lines = logging.getLogger(), StderrLines(as_json=False)
    before = logger.handlers[:]
    try:
        logging.basicConfig(handlers=[lines], force=True)
        assert lines.format(RECORD) == RECORD.getMessage()
    finally:
        logger.handlers[:] = before


class PanicException(BaseException):
    """As polars raises it."""


@pytest.mark.parametrize(("raised", "code", "words"), [
    (OSError(28, "No space left on device", "/tmp/x"), 3, "/tmp/x: the system refused: No space left on device"),
    (OSError("without a number"), 3, "OSError: without a number"),
    (TimeoutError("nobody is there"), 3, "TimeoutError: nobody is there"),
    (pl.exceptions.ComputeError("Input/output error (os error 5)"), 3, "Input/output error"),
    (PanicException("No space left on device (os error 28)"), 3, "No space left on device"),
    (PanicException("index out of bounds"), 4, "a Parquet file is damaged"),
    (ValueError("ours"), 70, "a mistake in culturekit"),
])  # fmt: skip
def test_the_outside_is_3_a_file_4_and_we_are_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, code: int, words: str
) -> None:
    def failing(**_: object) -> None:
        raise raised

    monkeypatch.setattr(commands, "app", failing)
    with pytest.raises(SystemExit) as left:
        cli.main()
    printed = capsys.readouterr().err
    assert left.value.code == code
    assert words in printed
    assert ("Traceback" in printed) == (code == 70)


def test_data_is_utf8_whatever_the_terminal_is() -> None:
    code = (
        "from culturekit.cli import app; app.app = lambda **_: print('Paçoca'); from culturekit.cli import main; main()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=True
    )
    assert answer.stdout.decode("utf-8") == "Paçoca\n"


def test_several_values_follow_one_set() -> None:
    words = [
        "run", "c3", "--set", "seed=1", "pairs.keep=2", "--out", "here", "d=3", "--set", "models.0.name=x", "a=[1]",
    ]  # fmt: skip
    assert " ".join(cli.spelled_out(words)) == (
        "run c3 --set seed=1 --set pairs.keep=2 --out here d=3 --set models.0.name=x --set a=[1]"
    )
    assert [*cli.spelled_out(["--set"])] == ["--set"]
