"""The keys that a task, an annotation, a result and a person have in exports of Label Studio and of the form."""

__all__ = ["ANNOTATION_KEYS", "LONGEST_RAW", "LONGEST_TEXT", "PERSON_KEYS", "RESULT_KEYS", "STUDY_KEYS", "TASK_KEYS"]


def words(text: str) -> frozenset[str]:
    """Read a list of keys."""
    return frozenset(text.split())


TASK_KEYS = words("""
    id data annotations predictions drafts meta created_at updated_at inner_id total_annotations cancelled_annotations
    total_predictions comment_count unresolved_comment_count last_comment_updated_at project updated_by comment_authors
    file_upload allow_skip overlap is_labeled agreement avg_lead_time draft_exists precomputed_agreement state
""")
ANNOTATION_KEYS = words("""
    id completed_by result was_cancelled ground_truth created_at updated_at draft_created_at lead_time prediction
    result_count unique_id import_id last_action bulk_created task project updated_by parent_prediction
    parent_annotation last_created_by created_username created_ago state
""")
RESULT_KEYS = words("id from_name to_name type value origin meta score readonly hidden")
PERSON_KEYS = words("id email first_name last_name username avatar initials last_activity phone")

STUDY_KEYS = ("prolific_pid", "study_id", "session_id")
"""The ids that links of Prolific carry into the form."""

LONGEST_TEXT = 20_000
"""Characters of a written answer; a longer one is set aside."""

LONGEST_RAW = 20_000
"""Characters that are kept of an annotation that is set aside."""
