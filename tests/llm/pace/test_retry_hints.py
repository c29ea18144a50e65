from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.dispatch import FIRST_WAIT, LONGEST_WAIT, retry_wait
from culturekit.llm.failures import LONGEST_HINT, wait_of


@given(st.binary(min_size=32, max_size=32), st.integers(1, 40))
def test_waits_double_and_are_only_drawn_out(key: bytes, tries: int) -> None:
    plain = min(FIRST_WAIT * 2.0 ** (tries - 1), LONGEST_WAIT)
    assert plain <= retry_wait(key, tries) <= 1.25 * plain


@given(st.binary(min_size=32, max_size=32), st.integers(1, 40), st.floats(0.0, 1e5))
def test_a_hint_is_waited_for_and_hardly_longer(key: bytes, tries: int, hint: float) -> None:
    assert hint < retry_wait(key, tries, hint=hint) <= hint + 0.01


def test_rows_that_failed_together_come_back_apart() -> None:
    waits = {retry_wait(bytes([number]) * 32, 1) for number in range(100)}
    assert len(waits) == 100


NOW = 1_790_000_000.25
INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo"}


@pytest.mark.parametrize(
    ("headers", "details", "wait"),
    [
        ({}, None, None),
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after": "0"}, None, 0.0),
        ({"retry-after": "-3"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after-ms": "1500"}, None, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "1"}, None, 1.5),
        ({"retry-after-ms": "500", "retry-after": "1"}, None, 1.0),
        ({}, [{"@type": "x.QuotaFailure"}, INFO | {"retryDelay": "34.074824224s"}], 34.074824224),
        ({}, [INFO | {"retryDelay": {"seconds": "3", "nanos": 500_000_000}}], 3.5),
        ({}, [INFO | {"retryDelay": "long"}], None),
        ({}, [INFO], None),
        ({}, {"not": "a list"}, None),
        ({"retry-after": "2"}, [INFO | {"retryDelay": "3s"}], 3.0),
        ({"retry-after": "9" * 400}, None, None),
        ({"retry-after": "1" + "0" * 300}, None, LONGEST_HINT),
        ({}, [INFO | {"retryDelay": {"seconds": 10**400}}], None),
    ],
)
def test_the_longest_wait_asked_for_counts(headers: dict[str, str], details: object, wait: float | None) -> None:
    assert wait_of(headers, details, now=NOW) == wait


@given(st.integers(-1000, 100_000))
def test_a_date_is_a_wait_from_now_and_never_a_negative_one(seconds: int) -> None:
    date = formatdate(int(NOW) + seconds, usegmt=True)
    assert wait_of({"retry-after": date}, now=NOW) == pytest.approx(max(0.0, seconds - 0.25))


@given(st.integers(0, 1000), st.integers(-100_000, 100_000))
def test_a_date_is_read_by_the_clock_that_wrote_it(seconds: int, skew: int) -> None:
    there = int(NOW) + skew
    headers = {"retry-after": formatdate(there + seconds, usegmt=True), "date": formatdate(there, usegmt=True)}
    assert wait_of(headers, now=NOW) == seconds
