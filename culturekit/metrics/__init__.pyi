from culturekit.metrics.ahead.descriptor_scores import (
    DimensionScore as DimensionScore,
)
from culturekit.metrics.ahead.descriptor_scores import (
    align as align,
)
from culturekit.metrics.ahead.descriptor_scores import (
    align_detail as align_detail,
)
from culturekit.metrics.ahead.descriptor_scores import (
    descriptor_diversity as descriptor_diversity,
)
from culturekit.metrics.ahead.descriptor_scores import exaggeration as exaggeration
from culturekit.metrics.ahead.descriptor_scores import faithfulness as faithfulness
from culturekit.metrics.ahead.descriptor_scores import (
    hallucination as hallucination,
)
from culturekit.metrics.ahead.descriptor_scores import (
    hallucination_detail as hallucination_detail,
)
from culturekit.metrics.ahead.descriptor_scores import (
    semantic_diversity as semantic_diversity,
)
from culturekit.metrics.ahead.matching import (
    DEFAULT_TAU as DEFAULT_TAU,
)
from culturekit.metrics.ahead.matching import (
    PUBLISHED_TAUS as PUBLISHED_TAUS,
)
from culturekit.metrics.ahead.matching import BestMatches as BestMatches
from culturekit.metrics.ahead.matching import (
    PhraseLists as PhraseLists,
)
from culturekit.metrics.ahead.matching import best_matches as best_matches
from culturekit.metrics.ahead.matching import (
    calibrate_tau as calibrate_tau,
)
from culturekit.metrics.ahead.matching import (
    normalise_phrase as normalise_phrase,
)
from culturekit.metrics.ahead.matching import (
    phrase_lists as phrase_lists,
)
from culturekit.metrics.captions import C3Alignment as C3Alignment
from culturekit.metrics.captions import alignment_c3 as alignment_c3
from culturekit.metrics.captions import keep_best as keep_best
from culturekit.metrics.corrected.audit_sampling import audit_sample as audit_sample
from culturekit.metrics.corrected.audited_counts import rater_model as rater_model
from culturekit.metrics.corrected.corrected_diversity import vendi_corrected as vendi_corrected
from culturekit.metrics.corrected.judged_means import JudgedMean as JudgedMean
from culturekit.metrics.corrected.judged_means import judged_mean as judged_mean
from culturekit.metrics.corrected.references import homogeneity_test as homogeneity_test
from culturekit.metrics.diversity.batch_diversity import vendi_batches as vendi_batches
from culturekit.metrics.diversity.batch_diversity import (
    vendi_jackknife as vendi_jackknife,
)
from culturekit.metrics.diversity.batch_diversity import (
    vendi_rarefied as vendi_rarefied,
)
from culturekit.metrics.diversity.label_diversity import (
    QVS as QVS,
)
from culturekit.metrics.diversity.label_diversity import distribution as distribution
from culturekit.metrics.diversity.label_diversity import mean_cosine as mean_cosine
from culturekit.metrics.diversity.label_diversity import (
    qvs as qvs,
)
from culturekit.metrics.diversity.label_diversity import (
    vendi as vendi,
)
from culturekit.metrics.diversity.label_diversity import vendi_bounds as vendi_bounds
from culturekit.metrics.diversity.label_diversity import vendi_features as vendi_features
from culturekit.metrics.diversity.label_diversity import vendi_kernel as vendi_kernel
from culturekit.metrics.diversity.label_diversity import (
    vendi_table as vendi_table,
)
from culturekit.metrics.diversity.labels import STANDARD_KERNELS as STANDARD_KERNELS
from culturekit.metrics.inclusion.region_rates import Themes as Themes
from culturekit.metrics.inclusion.region_rates import (
    consistency_and_representation as consistency_and_representation,
)
from culturekit.metrics.inclusion.region_rates import (
    in_region_rates as in_region_rates,
)
from culturekit.metrics.inclusion.region_rates import survey_themes as survey_themes
from culturekit.metrics.inclusion.region_rates import (
    task2_agreement as task2_agreement,
)
from culturekit.metrics.inclusion.region_rates import (
    triplet_agreement as triplet_agreement,
)
from culturekit.metrics.inclusion.task2_files import (
    Task2File as Task2File,
)
from culturekit.metrics.inclusion.task2_files import drop_unreliable as drop_unreliable
from culturekit.metrics.inclusion.task2_files import (
    read_task2 as read_task2,
)
from culturekit.metrics.inclusion.task2_files import (
    read_task2_file as read_task2_file,
)
from culturekit.metrics.inclusion.triplet_distances import (
    ImageSet as ImageSet,
)
from culturekit.metrics.inclusion.triplet_distances import (
    appeal_and_similarity as appeal_and_similarity,
)
from culturekit.metrics.inclusion.triplet_distances import (
    appeal_in_manifold as appeal_in_manifold,
)
from culturekit.metrics.inclusion.triplet_distances import (
    closer_rates as closer_rates,
)
from culturekit.metrics.inclusion.triplet_distances import (
    image_set as image_set,
)
from culturekit.metrics.inclusion.triplet_distances import (
    triplet_distance as triplet_distance,
)
from culturekit.metrics.inclusion.triplet_distances import (
    triplets as triplets,
)
from culturekit.metrics.linguistic.human_tables import dialect_gap as dialect_gap
from culturekit.metrics.linguistic.human_tables import likert_table as likert_table
from culturekit.metrics.linguistic.human_tables import relevance_rates as relevance_rates
from culturekit.metrics.linguistic.neutral_groups import (
    NeutralSpread as NeutralSpread,
)
from culturekit.metrics.linguistic.neutral_groups import (
    neutral_similarity as neutral_similarity,
)
from culturekit.metrics.linguistic.neutral_groups import (
    neutral_spread as neutral_spread,
)
from culturekit.metrics.linguistic.neutral_groups import question_pair as question_pair
from culturekit.metrics.linguistic.picture_tones import SkinTone as SkinTone
from culturekit.metrics.linguistic.picture_tones import skin_tone as skin_tone
from culturekit.metrics.linguistic.tone_histograms import MONK_TONES as MONK_TONES
from culturekit.metrics.linguistic.tone_histograms import CorrectedTones as CorrectedTones
from culturekit.metrics.linguistic.tone_histograms import (
    Spread as Spread,
)
from culturekit.metrics.linguistic.tone_histograms import corrected_tones as corrected_tones
from culturekit.metrics.linguistic.tone_histograms import nearest_tone as nearest_tone
from culturekit.metrics.linguistic.tone_histograms import (
    tone_histogram as tone_histogram,
)
from culturekit.metrics.linguistic.tone_histograms import (
    tone_spread as tone_spread,
)
from culturekit.metrics.linguistic.tone_histograms import tone_spread_interval as tone_spread_interval
from culturekit.metrics.questions import DSGScore as DSGScore
from culturekit.metrics.questions import dsg_score as dsg_score
from culturekit.metrics.questions import vqa_score as vqa_score
from culturekit.metrics.realism.clip_scores import (
    PRESENCE_THRESHOLDS as PRESENCE_THRESHOLDS,
)
from culturekit.metrics.realism.clip_scores import (
    YesBucket as YesBucket,
)
from culturekit.metrics.realism.clip_scores import clip_score as clip_score
from culturekit.metrics.realism.clip_scores import (
    object_consistency as object_consistency,
)
from culturekit.metrics.realism.clip_scores import (
    objects_present as objects_present,
)
from culturekit.metrics.realism.clip_scores import (
    yes_by_score as yes_by_score,
)
from culturekit.metrics.realism.features import squared_radii as squared_radii
from culturekit.metrics.realism.features import unduplicated as unduplicated
from culturekit.metrics.realism.manifolds import (
    PRDC as PRDC,
)
from culturekit.metrics.realism.manifolds import (
    Neighbourhoods as Neighbourhoods,
)
from culturekit.metrics.realism.manifolds import balanced_sample as balanced_sample
from culturekit.metrics.realism.manifolds import (
    in_manifold as in_manifold,
)
from culturekit.metrics.realism.manifolds import (
    neighbourhoods as neighbourhoods,
)
from culturekit.metrics.realism.manifolds import (
    prdc as prdc,
)
from culturekit.metrics.realism.set_distances import InceptionScore as InceptionScore
from culturekit.metrics.realism.set_distances import frechet_distance as frechet_distance
from culturekit.metrics.realism.set_distances import inception_score as inception_score
from culturekit.metrics.realism.set_distances import (
    kernel_distance as kernel_distance,
)
from culturekit.metrics.realism.set_distances import (
    kernel_distance_interval as kernel_distance_interval,
)
from culturekit.metrics.statistics.chance_corrected import (
    cohen_kappa as cohen_kappa,
)
from culturekit.metrics.statistics.chance_corrected import (
    fleiss_kappa as fleiss_kappa,
)
from culturekit.metrics.statistics.chance_corrected import (
    krippendorff_alpha as krippendorff_alpha,
)
from culturekit.metrics.statistics.chance_corrected import (
    pairwise_agreement as pairwise_agreement,
)
from culturekit.metrics.statistics.chance_corrected import (
    rating_counts as rating_counts,
)
from culturekit.metrics.statistics.chance_corrected import (
    unanimous_agreement as unanimous_agreement,
)
from culturekit.metrics.statistics.comparisons import Comparison as Comparison
from culturekit.metrics.statistics.comparisons import benjamini_hochberg as benjamini_hochberg
from culturekit.metrics.statistics.comparisons import compare as compare
from culturekit.metrics.statistics.comparisons import compare_models as compare_models
from culturekit.metrics.statistics.comparisons import group_gap as group_gap
from culturekit.metrics.statistics.comparisons import holm as holm
from culturekit.metrics.statistics.correlations import bootstrap as bootstrap
from culturekit.metrics.statistics.correlations import correlate as correlate
from culturekit.metrics.statistics.intervals import Interval as Interval
from culturekit.metrics.statistics.intervals import clustered_share as clustered_share
from culturekit.metrics.statistics.intervals import interval as interval
from culturekit.metrics.statistics.intervals import proportion_interval as proportion_interval
from culturekit.metrics.statistics.pools import (
    JudgeCalibration as JudgeCalibration,
)
from culturekit.metrics.statistics.pools import PoolDivergence as PoolDivergence
from culturekit.metrics.statistics.pools import (
    calibrate_judge as calibrate_judge,
)
from culturekit.metrics.statistics.pools import pool_divergence as pool_divergence
from culturekit.scores.catalog import CATALOG as CATALOG
from culturekit.scores.catalog import Metric as Metric

MODULES: dict[str, str]
__all__: list[str]
