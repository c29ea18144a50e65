import json
import logging

import pytest

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
