"""Every score of the field, as pure functions of arrays and labels.

Names are loaded when they are first used: importing this package loads neither scipy nor polars. What each name is,
type checkers read in the stub beside this file. The way from tables to scores is in `culturekit.scores`.
"""

import importlib
from types import FunctionType

# No module is called like a public name: its import would put the module in the name's place.
NAMES = {
    "ahead.descriptor_scores": "DimensionScore align align_detail descriptor_diversity exaggeration "
    "faithfulness hallucination hallucination_detail semantic_diversity",
    "ahead.matching": "BestMatches DEFAULT_TAU PUBLISHED_TAUS PhraseLists best_matches calibrate_tau "
    "normalise_phrase phrase_lists",
    "captions": "C3Alignment alignment_c3 keep_best",
    ".scores.catalog": "CATALOG Metric",
    "corrected.audit_sampling": "audit_sample",
    "corrected.audited_counts": "rater_model",
    "corrected.corrected_diversity": "vendi_corrected",
    "corrected.judged_means": "JudgedMean judged_mean",
    "corrected.references": "homogeneity_test",
    "diversity.batch_diversity": "vendi_batches vendi_jackknife vendi_rarefied",
    "diversity.label_diversity": "QVS distribution mean_cosine qvs vendi vendi_bounds vendi_features vendi_kernel "
    "vendi_table",
    "diversity.labels": "STANDARD_KERNELS",
    "inclusion.region_rates": "Themes consistency_and_representation in_region_rates survey_themes "
    "task2_agreement triplet_agreement",
    "inclusion.task2_files": "Task2File drop_unreliable read_task2 read_task2_file",
    "inclusion.triplet_distances": "ImageSet appeal_and_similarity appeal_in_manifold closer_rates image_set "
    "triplet_distance triplets",
    "linguistic.human_tables": "dialect_gap likert_table relevance_rates",
    "linguistic.neutral_groups": "NeutralSpread neutral_similarity neutral_spread question_pair",
    "linguistic.picture_tones": "SkinTone skin_tone",
    "linguistic.tone_histograms": "CorrectedTones MONK_TONES Spread corrected_tones nearest_tone "
    "tone_histogram tone_spread tone_spread_interval",
    "questions": "DSGScore dsg_score vqa_score",
    "realism.clip_scores": "PRESENCE_THRESHOLDS YesBucket clip_score object_consistency objects_present yes_by_score",
    "realism.features": "squared_radii unduplicated",
    "realism.manifolds": "Neighbourhoods PRDC balanced_sample in_manifold neighbourhoods prdc",
    "realism.set_distances": "InceptionScore frechet_distance inception_score kernel_distance kernel_distance_interval",
    "statistics.chance_corrected": "cohen_kappa fleiss_kappa krippendorff_alpha pairwise_agreement "
    "rating_counts unanimous_agreement",
    "statistics.comparisons": "Comparison benjamini_hochberg compare compare_models group_gap holm",
    "statistics.correlations": "bootstrap correlate",
    "statistics.intervals": "Interval clustered_share interval proportion_interval",
    "statistics.pools": "JudgeCalibration PoolDivergence calibrate_judge pool_divergence",
}

MODULES: dict[str, str] = {}
for _module, _names in NAMES.items():
    MODULES |= dict.fromkeys(_names.split(), _module)

__all__ = sorted(MODULES)


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f".{MODULES[name]}", __name__), name)
    if isinstance(value, FunctionType):
        from culturekit.metrics.arguments import front

        value = front(value, __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, whether loaded or not."""
    return sorted({*globals(), *__all__})
