"""Every score of the field, as pure functions of arrays and labels.

Names are loaded when they are first used: importing this package loads neither scipy nor polars. What each name is,
type checkers read in the stub beside this file. The way from tables to scores is in `culturekit.metrics.scoring`.
"""

import importlib

# No module is called like a public name: its import would put the module in the name's place.
NAMES = {
    "ahead.composite": "exaggeration faithfulness",
    "ahead.descriptor_scores": "DimensionScore align align_detail descriptor_diversity hallucination "
    "hallucination_detail semantic_diversity",
    "ahead.dimensions": "DEFAULT_TAU PUBLISHED_TAUS calibrate_tau",
    "ahead.matching": "BestMatches PhraseLists best_matches normalise_phrase phrase_lists",
    "captions.caption_alignment": "C3Alignment alignment_c3 keep_best",
    "catalog": "CATALOG Metric",
    "corrected.audit_sampling": "audit_sample",
    "corrected.corrected_diversity": "vendi_corrected",
    "corrected.judged_means": "JudgedMean judged_mean",
    "corrected.raters": "rater_model",
    "corrected.references": "homogeneity_test",
    "diversity.batch_diversity": "vendi_batches",
    "diversity.bounds": "vendi_bounds",
    "diversity.kernel_diversity": "mean_cosine vendi_features vendi_kernel",
    "diversity.kernels": "STANDARD_KERNELS",
    "diversity.label_diversity": "QVS qvs vendi vendi_table",
    "diversity.label_shares": "distribution",
    "diversity.rarefaction": "vendi_jackknife vendi_rarefied",
    "inclusion.annotator_quality": "drop_unreliable",
    "inclusion.manifold_appeal": "appeal_and_similarity appeal_in_manifold",
    "inclusion.region_rates": "consistency_and_representation in_region_rates",
    "inclusion.survey_themes": "Themes survey_themes",
    "inclusion.task2_files": "Task2File read_task2 read_task2_file",
    "inclusion.task_agreement": "task2_agreement triplet_agreement",
    "inclusion.triplet_combos": "ImageSet image_set triplets",
    "inclusion.triplet_distances": "closer_rates triplet_distance",
    "linguistic.dialects": "dialect_gap",
    "linguistic.human_tables": "likert_table relevance_rates",
    "linguistic.monk_scale": "MONK_TONES nearest_tone",
    "linguistic.neutral_groups": "NeutralSpread neutral_similarity neutral_spread question_pair",
    "linguistic.picture_tones": "SkinTone skin_tone",
    "linguistic.corrected_tones": "CorrectedTones corrected_tones",
    "linguistic.tone_histograms": "Spread tone_histogram tone_spread tone_spread_interval",
    "questions.graph_scores": "DSGScore dsg_score",
    "questions.yes_probabilities": "vqa_score",
    "realism.clip_scores": "PRESENCE_THRESHOLDS YesBucket clip_score object_consistency objects_present yes_by_score",
    "realism.features": "unduplicated",
    "realism.manifolds": "Neighbourhoods PRDC balanced_sample in_manifold neighbourhoods prdc",
    "realism.neighbours": "squared_radii",
    "realism.set_distances": "InceptionScore frechet_distance inception_score kernel_distance kernel_distance_interval",
    "statistics.chance_corrected": "cohen_kappa fleiss_kappa krippendorff_alpha",
    "statistics.clustered_shares": "clustered_share",
    "statistics.comparisons": "Comparison compare",
    "statistics.corrections": "benjamini_hochberg holm",
    "statistics.correlations": "correlate",
    "statistics.group_gaps": "group_gap",
    "statistics.intervals": "Interval interval proportion_interval",
    "statistics.model_comparisons": "compare_models",
    "statistics.pools": "JudgeCalibration PoolDivergence calibrate_judge pool_divergence",
    "statistics.rating_tables": "pairwise_agreement rating_counts unanimous_agreement",
    "statistics.resampling": "bootstrap",
}

MODULES = {name: module for module, names in NAMES.items() for name in names.split()}

__all__ = sorted(MODULES)


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, whether loaded or not."""
    return sorted({*globals(), *__all__})
