from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.pace.retry_waits import FIRST_WAIT, LONGEST_WAIT, retry_wait


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
