"""Every table that culturekit writes, declared once; `?` marks what may be null."""

from collections.abc import Mapping

from culturekit.core.choices import NONE_MEANS
from culturekit.core.table import Table, declare

# The tables of the ground truth: from the items of a dump to the cultural space and its prompts.

# One row per item of a dump, and where its line stands: file, gzip member, line of the file (from 1) and byte offset
# within the decompressed member. `iso` and `demonym` (P297, P1549) stand on countries. `labels` are those in the
# languages asked for besides English, such as `zh:饺子`; the column is there where some were asked for.
ITEMS = declare("""items by number:
    qid str, number u32, label str?, label_language str?, description str?, aliases list[str], sitelinks u16,
    title str?, image str?, lat f64?, lon f64?, file u16, member u32, line u64, offset u64;
    optional: iso str?, demonym str?, labels list[str]""")

# One row per statement whose value is an item; `value` is null for somevalue and novalue.
STATEMENTS = declare("""statements by number property position:
    number u32, property str, position u16, value u32?, snak str, rank str, qualified bool, ended bool""")

# Where a dump file can be read from without what stands before: the plain bytes of a member from `offset` on begin at
# byte `begin` of the file, in bzip2 at that bit. A row per gzip member or zstd frame; of bzip2, one block in 8 MB.
STARTS = declare("starts by file member offset: file u16, member u32, offset u64, begin u64")

CANDIDATE_COLUMNS = """
    qid str, label str?, description str?, aliases list[str], concept str, country_qids list[str],
    hop u8, roots list[str], path list[str],
    p31 list[str], p279 list[str], p495 list[str], p17 list[str], p2012 list[str], p361 list[str],
    sitelinks u16, title str?, image str?, lat f64?, lon f64?
    """

CANDIDATE_OPTIONS = "valueless list[str]"

COMPLETION_COLUMNS = "source str, round u8, proposer str?, gained list[str]"

REVIEW_COLUMNS = "reviewer str?, reviewed_on str?"

COUNTRY_COLUMNS = "waiting_qids list[str], refused_qids list[str]"

# One row per (qid, concept): `hop` is the smallest, `path` one shortest, root first and qid last. `p495` and `p17` say
# which property states each country, as the item has it; `country_qids` are what follows from them under the concept's
# rules. `valueless` names statements of an edge or a country that have no value, such as `P495 novalue`.
CANDIDATES = declare(f"candidates by concept qid: {CANDIDATE_COLUMNS}; optional: {CANDIDATE_OPTIONS}")

# One row per way from a root to an artifact, ways that differ only further up told apart by `copy`, from 1.
AUTHORS_ROWS = declare("""authors_rows by concept root hop parent qid copy:
    concept str, root str, hop u8, parent str, qid str, copy u32""")

# The candidates that a judge kept (`verdict` is keep), or that wait for a person to look at (`review`); a completed or
# reviewed table is one of these with more columns. The verdict is about `country_qids`; of what is kept for some
# countries, `waiting_qids` wait for a person, and `refused_qids` were refused. `reviewer` and `reviewed_on` say which
# person decided, and when.
KEPT = declare(f"""kept by concept qid:
    {CANDIDATE_COLUMNS}, verdict str, reason str;
    optional: {CANDIDATE_OPTIONS}, {COMPLETION_COLUMNS}, {REVIEW_COLUMNS}, {COUNTRY_COLUMNS}""")

# The candidates that a judge removed, whole, so that a person can overrule it; why stands in `drops`, too.
REMOVED = declare(f"""removed by concept qid:
    {CANDIDATE_COLUMNS}, verdict str, reason str;
    optional: {CANDIDATE_OPTIONS}, {COUNTRY_COLUMNS}""")

# What the judge said of each candidate and country that it was asked about: its verdict, and, where it was asked for
# them, how sure it is (0.5 to 1) and why, in a few words. `outcome` is how asking ended.
VERDICTS = declare("""verdicts by concept qid country:
    concept str, qid str, country str, verdict str, outcome str, confidence f64?, why str?""")

# Artifacts, each for one country, that were drawn for people to judge: `chance` is the one with which each was.
SPACE_SAMPLE = declare("""space_sample by concept qid country:
    concept str, qid str, country str, verdict str, root str?, confidence f64?, chance f64""")

# How many artifacts have each verdict, by concept and country: what a sample was drawn from.
SPACE_CELLS = declare("space_cells by concept country verdict: concept str, country str, verdict str, units u32")

# How good a cultural space is, by people who judged a sample: `measure` is a share (wrong keeps, wrong removes,
# undecided that belong) or `artifacts`, how many of the candidates belong, where `judged` is how many were kept.
# Concept and country are null where all are taken together; of `units` some were `drawn`, and `answered` by who could
# tell. `kept` is the SHA-256 of the candidates.
SPACE_CHECK = declare("""space_check by measure concept country:
    measure str, concept str?, country str?, value f64, ci_low f64, ci_high f64, units u32, drawn u32, answered u32,
    judged u32?, kept str""")

# The kept candidates and what a model added. `qid` is `LLM:` and a slug where no graph knows the artifact; `source` is
# `wikidata` or `llm`. `gained` names, by ISO code, the countries that were added; `round` and `proposer` say when first
# and by whom, and are 0 and null where nothing was. `hop` is 0 and `path` empty where no walk came by.
COMPLETED = declare(f"""completed by concept qid:
    {CANDIDATE_COLUMNS}, verdict str, reason str, {COMPLETION_COLUMNS};
    optional: {CANDIDATE_OPTIONS}, {REVIEW_COLUMNS}, {COUNTRY_COLUMNS}""")

# Every artifact that a model proposed, and what became of it: `added`, `country added`, `known`, `repeated`, `refused`,
# `left out` or `taken back`.
PROPOSALS = declare("""proposals by concept country round position:
    proposal_id str, concept str, country str, round u8, position u16, name str, other_names list[str], kind str,
    what str, artifact_id str?, outcome str, detail str?""")

# One row per question to a proposer: what came of its reply, and `ended` where it was the last of its cell. `raw` is
# the reply itself where it could not be used. `taken_back` counts additions of the round before.
ROUNDS = declare("""rounds by concept country round:
    concept str, country str, round u8, proposer str, outcome str, proposed u16, added u16, countries_added u16,
    known u16, repeated u16, refused u16, left_out u16, taken_back u16, ended str?, raw str?""")

# What people decided about candidates: accept, for one country at least, or reject; `by_country` has the word on each.
# `reason` is why the candidate was in the table before; `counts` is false where reviewers disagree about a country, so
# that it still waits.
DECISIONS = declare("""decisions by concept qid reviewer:
    concept str, qid str, reviewer str, decided_on str, decision str, comment str?, reason str, file str,
    counts bool;
    optional: by_country list[str]""")

# Candidates and countries that people decide about by the group: what a task of the form stands for.
REVIEW_GROUPS = declare("review_groups by group concept qid country: group str, concept str, qid str, country str")

# What a stage left out, and why; nothing else disappears.
DROPS = declare("drops by key stage concept: key str, concept str?, stage str, reason str, detail str?")

# What changed between two graphs (`part` is item, label, edge, country or statement) or two extractions (candidate,
# label, country, root, hop, path or field); `change` is added, removed or changed. Between two cultural spaces `part`
# is artifact, or the column that is another; `qid` is the artifact's id and `value` its country, both as they were, and
# `change` is added, removed, renamed or reclassified. There each row has the first `stage` at which its item differs,
# and what differs in the inputs and options of that stage (dump, config, wording, model, code): in `causes` where it is
# one kind of thing, else in `undecided`. `because` is the evidence, in lines.
DIFF = declare("""diff by part concept qid property value change:
    part str, qid str, concept str?, property str?, value str?, change str, before str?, after str?;
    optional: stage str?, causes list[str], undecided list[str], because str?""")

# One row per artifact and country; `artifact_id` is the QID, or a slug after `LLM:`, or after `list:` where a person's
# file names the artifact. `source` is `wikidata`, `llm`, or `list`. `country_order` is 0 for the country that the item
# states first, P495 before P17. `aliases` are other names of the artifact. `verdict` is `keep`, or `review` where a
# release took in what no judge or person kept; null where nobody says.
CSPACE = declare("""cspace by concept country artifact_id:
    artifact_id str, qid str?, name str, concept str, subconcept str?, country str, country_name str, continent str,
    source str, popularity f64?, popularity_source str?, path list[str];
    optional: country_order u16, aliases list[str]?, verdict str?""")

# `pair_id` is shared by the prompts that ask for the same in several languages; `marks` say which of their words no
# speaker verified: `name from Wikidata`, `name in English`, `country from CLDR`. `activity` is what the people of the
# picture do, in prompts of the kind `activity`; `meaning` what a word of a dialect stands for, such as `whip: a car`.
PROMPTS = declare("""prompts by prompt_id:
    prompt_id str, text str, negative_text str?, benchmark str, kind str, concept str?, country str?, group str?,
    artifact_id str?, language str, template_id str;
    optional: pair_id str, marks list[str], activity str, meaning str""")

# Every pair of dialects that was proposed or listed, with sentences that have `{}` where the noun stands. `proposer` is
# the model, or where a listed pair is from; `outcome` is `kept`, or the filter at which it fell: malformed, repeated,
# not in the corpus, not grammatical, unreviewed; `detail` says why, or where the word can be looked up.
DIALECT_PAIRS = declare("""dialect_pairs by position:
    position u32, standard str, other str, frames list[str], proposer str, outcome str, detail str?""")

# Nouns of WordNet below a term, by the names of both synsets, for people to say which are neutral.
NEUTRAL_CANDIDATES = declare("neutral_candidates by synset: synset str, noun str, term str, definition str")

# How many artifacts were asked for, how many there were without those rejected in review, how many were drawn.
QUOTAS = declare("quotas by concept country: concept str, country str, quota u32, available u32, drawn u32")

# Rows of a public file whose prompt is not what its name and the templates give; `row` is its place, from 0.
DIFFERENCES = declare("""differences by row:
    row u32, artifact_id str?, concept str?, country str?, name str, released str, rebuilt str?, difference str""")

# What a picture of a prompt should show, by dimension.
DESCRIPTORS = declare("""descriptors by prompt_id dimension token:
    prompt_id str, dimension str, token str, style str, necessity str, proposers list[str]""")

# What pictures of a country overdo.
STEREOTYPES = declare("stereotypes by country token: country str, token str")

# Questions about the images of a prompt; one whose parents are not all answered yes means nothing. `kind` is what is
# asked for, such as entity, attribute, relation or global; `fact` is what the question was made from.
QUESTIONS = declare("""questions by prompt_id question_id:
    prompt_id str, question_id str, parents list[str], text str, kind str;
    optional: fact str""")

# How each prompt ended that a model was to turn into questions: in how many, `depth` of them on the longest way down. A
# prompt without questions says why in its outcome.
QUESTION_GRAPHS = declare("""question_graphs by prompt_id:
    prompt_id str, writer str, outcome str, questions u16, depth u16, detail str?, raw str""")

# The tables about images: what was made, what each shows, and what models say of it.

# One row per image asked for; `path` is relative to the table's folder, and empty where there is no file. `concept` and
# `country` are the prompt's. The simulated backend also stores what it drew; a culture-free image has no truth.
# `truth_scene` is JSON: the activity shown, what is shown of it by dimension, and how strongly stereotypes are, from 0
# to 1. Images that came from a folder have the name of their file in it as `source`, and the hash of that file;
# `duplicate_of` is the image_id of the first file with the same bytes.
IMAGES = declare("""images by image_id:
    image_id str, path str, prompt_id str?, model str, model_version str?, seed i64?, seed_honoured bool?,
    repeat u16?, slot u8?, prompt_sent str?, prompt_revised str?, rewriter str, safety str?, requested_at datetime?,
    provider_params str, sha256 str, width u32, height u32, status str, reason str?;
    optional: concept str?, country str?, truth_artifact_id str?, truth_country str?, truth_scene str?, source str?,
    source_sha256 str?, duplicate_of str?""")

# What each image shows, nearest first. The artifact's id is null only where the method says that the image shows none,
# or names one that the cultural space does not know; a nearest-artifact row always has one.
MATCHES = declare("""matches by image_id rank:
    image_id str, model str, prompt_id str?, concept str?, repeat u16?, slot u8?, rank u16, artifact_id str?,
    artifact str?, country str?, countries list[str], continent str?, score f32, margin f32, country_margin f32,
    abstained bool, method str;
    belongs: country: continent?""")

# What each margin would accept of the pictures that abstention was calibrated on, and how much of that was wrong;
# `upper` bounds that error at 95 %, and `holds` says whether it is shown to be at most `max_error`.
CALIBRATION = declare("""calibration by threshold:
    threshold f32, references u32, accepted u32, wrong u32, error f64, upper f64, max_error f64, holds bool,
    chosen bool""")

QUALITY = declare("quality by scorer image_id: image_id str, scorer str, value f64")

# How far the images of a batch are apart on average, over all pairs; batches of a repeat of a prompt are numbered in
# the order of the slots, from 0.
PAIR_DISTANCES = declare("""pair_distances by measure model prompt_id repeat batch:
    measure str, model str, concept str?, prompt_id str, repeat u16, batch u32, images u32, distance f64""")

# What a judge model said of an image: one row per question put to it.
JUDGMENTS = declare("""judgments by image_id prompt_id judge task item dimension:
    image_id str, prompt_id str?, judge str, task str, item str, dimension str?, value f64?, choice str?, raw str,
    outcome str""")

# What an index knows of its artifacts: all countries, the one stated first in front, and the continent of each.
ARTIFACTS = declare("""artifacts by artifact_id:
    artifact_id str, artifact str, concepts list[str], countries list[str], continents list[str]""")

# The artifacts that most images of a model have among their neighbours: in how many images' k nearest one is, and of
# how many it is the nearest; `share` is of the images.
HUBS = declare("""hubs by model rank:
    model str, rank u32, artifact_id str, artifact str, country str, neighbours u64, nearest u64, share f64""")

# How often held-out references are mapped to the right country, by country; the row without one counts artifacts, over
# all. Of `shown` pictures of a country's artifacts `recognised` were mapped to an artifact that has that country; of
# `mapped` pictures that were given to a country `right` showed an artifact that has it.
RECOGNITION = declare("""recognition by country:
    country str?, shown u64, recognised u64, recall f64?, mapped u64, right u64, precision f64?""")

# Which vector of `vectors.npy` belongs to what. In an index the id is an artifact's, the channel is `image` or `text`,
# and `source` names the reference picture or gives the text; rows stand by channel, the artifact's first concept and
# country, its id, and the source.
VECTOR_IDS = declare("ids by row: row u32, id str; optional: channel str, source str")

# Where the vectors of a concept and country stand in `vectors.npy` of an index: rows `start` up to `stop`.
SLICES = declare("slices by channel concept country: channel str, concept str, country str, start u32, stop u32")

# Rows of an index that no longer count; part 0 is `vectors.npy`, part 1 is `vectors-0001.npy`, and so on.
TOMBSTONES = declare("tombstones by part row: part u32, row u32")

# The tables of captions: what models propose, translations, objects in pictures, and pairs to train on.

# Captions of a culture, each with the category of error that pictures of it are likely to show. Round 0 are the seeds,
# which nobody proposed.
CAPTIONS = declare("""captions by id:
    id str, text str, category str, culture str, language str, round u32, proposer str?""")

# Every caption that was proposed, the earlier captions that the question had as `examples`, and what came of it: `kept`
# as `caption_id`, or why not. `nearest` is the earlier caption that it is most like, `similarity` their cosine, or 1
# where they are the same but for case and punctuation.
CAPTION_PROPOSALS = declare("""caption_proposals by round request position:
    round u32, request u32, position u16, text str, category str, examples list[str], outcome str, caption_id str?,
    nearest str?, similarity f64?""")

# Captions by category, and all of them as `all`: how many, words of each on average, least and most; `objects` are
# those of each on average, over the `counted` captions of which they are known.
CAPTION_STATS = declare("""caption_stats by category:
    category str, captions u32, words f64, fewest u32, most u32, counted u32, objects f64?""")

# Captions in another language: `text` is the translation of `source` into `language`.
TRANSLATIONS = declare("translations by id: id str, text str, source str, language str, translator str")

# Objects of pictures, or of captions: `id` is ITEM#k for object k of an item, which is how `score c3` finds them in a
# folder of vectors of the column `text`.
OBJECTS = declare("objects by id: id str, item str, text str, probability f64?")

# Every item under every strategy, kept or not. `value` is what it was ranked by, for `random` its draw; equal values
# stand in order of the items, and one without has no rank. `missing` are those of the strategy's terms (text, image,
# object) that the item lacks; `reason` says why it is not kept.
SELECTED = declare("""selected by strategy item:
    strategy str, item str, rank u32?, value f64?, kept bool, missing list[str], reason str?""")

# Under which licence an image may be passed on, where it is from, and whose it is.
RIGHTS = declare("rights by image_id: image_id str, licence str?, source str?, author str?")

# Every picture that was exported, with its caption; `path` is that in the folder, or in the shard `a.tar/b`.
EXPORTED = declare("""exported by form path:
    form str, path str, item str, rank u32, text str, sha256 str, licence str?, source str?, author str?""")

# Every step of a training: the loss of its batch, and the length of its gradient before that was cut. `probe` is the
# loss on the same pairs with the same noise, before the first step and at checkpoints.
TRAINING = declare("training by step: step u32, loss f64?, gradient f64?, probe f64?")

# The tables of activities: from pages about countries to what pictures of an activity should show.

# Sections of pages about countries; `sha256` is that of the page's text, `categories` what is looked for there.
PAGES = declare("""pages by page_id number:
    page_id str, number u16, source str, country str, url str?, title str, revision str?, sha256 str, section str,
    text str, categories list[str]""")

# Every activity that a reader found in a section, and what came of it: `ok`, or why it is not taken.
MENTIONS = declare("""mentions by country category page_id number position:
    country str, category str, page_id str, number u16, position u16, name str, quote str, reader str, outcome str""")

# What prompts ask for in each country. `form` is `multi-variant`, `setting` or `single`; only the first have a source:
# `quote` stands on the page `title` in its `revision`. `also` are names that were merged, `mentions` how often.
ACTIVITIES = declare("""activities by country category activity:
    activity_id str, country str, category str, form str, activity str, also list[str], quote str?, page_id str?,
    url str?, title str?, revision str?, mentions u16""")

# Photographs that services of the web list under open licences: what was searched for, whose each is, and where.
PHOTOGRAPHS = declare("""photographs by prompt_id slot:
    path str, prompt_id str, slot u16, service str, language str, query str, title str, author str, licence str,
    licence_url str, page str, url str, sha256 str, width u32, height u32""")

# Every descriptor that a model proposed, and what came of it: `proposed`, or why it is none.
PROPOSED_DESCRIPTORS = declare("""proposed_descriptors by prompt_id dimension proposer position:
    prompt_id str, dimension str, proposer str, position u16, token str, style str, necessity str, outcome str,
    detail str?""")

# What became of every proposal: `kept`, `merged` into the descriptor `kept_as`, or why it went. `proposers` are those
# of equal phrases; `invented` is what a refiner named that nobody proposed.
DESCRIPTOR_TRAIL = declare("""descriptor_trail by prompt_id dimension number:
    prompt_id str, dimension str, number u16, token str, style str, necessity str, proposers list[str], outcome str,
    kept_as str?, refiner str""")

# Files in the layout that descriptors were published in, in their order: a row per descriptor, or one without a token
# for an empty list. `indent`, `ascii` and `newline` say how the file was written.
PUBLISHED_DESCRIPTORS = declare("""published_descriptors by file number:
    file str, number u32, country str, category str, activity str, dimension str, token str?, style str?,
    necessity str?, indent u8?, ascii bool, newline bool""")

# The tables of what people are asked, and what they answer.

# Which images people should look at; `stratum` is the mapped label the draw was spread over, `chance` the probability
# with which each image was drawn. Where whole batches were drawn, `batch` names that of each image; where somebody
# looks at the answers on the way, `look` says before which of the looks it is answered, and `goal` for what.
AUDIT_SAMPLE = declare("""audit_sample by image_id:
    image_id str, model str, concept str?, prompt_id str?, stratum str, chance f64;
    optional: batch str?, look i64?, goal str?""")

# Images of activities that people are to mark: which of the phrases each shows, and which of them matter. `dimensions`
# says which each phrase belongs to.
SCENE_ITEMS = declare("""scene_items by item_id:
    item_id str, image_id str, model str, prompt_id str, concept str?, country str, country_name str, group str?,
    activity str, descriptors list[str], dimensions list[str]""")

# Images of which people say what they see in them: `source` is the model, or `real`; `region` is null where the prompt
# named none.
OBJECT_ITEMS = declare("""object_items by item_id:
    item_id str, image_id str, img_path str, model str, source str, prompt_id str, object str, region str?;
    names: object region source=real;
    belongs: image_id: img_path model source prompt_id object region""")

# Pictures with captions that people are to rate in their translation.
PAIR_ITEMS = declare("pair_items by item_id: item_id str, image_id str, model str, caption str, translation str")

# What people of a pool say an image shows; `none_of_these` is an answer. `none_means` says which: `no culture shown`,
# `cannot tell`, or `not in the list` (then the continent may be known); null where the form did not tell these apart.
# `drawing` names the drawn sample that they were asked about. Answers about `gold` pictures, which are none of a
# model's, stand beside what these are known to show, `known_` labels, all null for no culture. `offered_first` says
# that the form listed first what the image was mapped to, `as_mapped` that this was the answer; null where the form did
# not know, the latter also where it did not list that.
AUDITS = declare(
    """audits by image_id pool annotator:
    image_id str, pool str, annotator str, artifact_id str?, country str?, continent str?, none_of_these bool;
    optional: drawing str?, none_means str?, gold bool?, known_artifact_id str?, known_country str?,
    known_continent str?, offered_first bool?, as_mapped bool?;
    names: country continent known_country known_continent;
    belongs: annotator: pool, country: continent?, known_country: known_continent?""",
    allowed={"none_means": NONE_MEANS},
)

# What annotators answered: one row per item, annotator and criterion.
ANNOTATIONS = declare("""annotations by item_id annotator scheme criterion:
    item_id str, annotator str, annotator_region str, in_region bool?, scheme str, criterion str, value f64?,
    choice str?, text str?, seconds f64?, flags list[str];
    names: scheme criterion;
    belongs: annotator: annotator_region""")

# Answers to attention checks, to items asked again and to items of known answers (`kind` is `check`, `repeat`, `gold`
# or `trial`): they are in no average. `expected` is what the check asked for, what was answered the first time, or what
# is right; `held` says whether the answer keeps to it.
ANNOTATION_CHECKS = declare("""annotation_checks by task annotator criterion:
    task str, kind str, item_id str, annotator str, annotator_region str, scheme str, criterion str, choice str?,
    text str?, expected str?, held bool?, seconds f64?;
    belongs: annotator: annotator_region""")

# What the blinded tasks of an annotation project stand for: keep it from annotators. `pictures` are image ids in the
# order of their `places` on the screen, `files` the blinded names; `options` (JSON) tells what codes of options mean,
# `content` is the hash of everything that the task shows. `slots` annotators of the region are to answer the task.
ANNOTATION_KEY = declare("""annotation_key by task:
    task str, part str, kind str, item_id str, repeat_of str?, expected str?, annotator_region str, in_region bool?,
    slots u8, pictures list[str], places list[str], files list[str], options str, content str, model str?,
    concept str?, country str?, group str?, prompt_id str?""")

# What the items of annotations are: the model that made them, and the place of the prompt.
RATED_ITEMS = declare("""rated_items by item_id:
    item_id str, model str?, concept str?, country str?, group str?, prompt_id str?;
    names: concept country group""")

# Answers that were not taken over, one row per mistake; numbers count from 1 in the file, annotation 0 is the task
# itself. `raw` is the annotation as it came (the first 20,000 characters).
QUARANTINE = declare("""quarantine by file task_number annotation_number reason field:
    file str, task_number u32, annotation_number u32, task str?, item_id str?, annotator str?, reason str, field str,
    detail str, raw str""")

# How each person did. Of `answers` to `items`, `counted` are in the scores, `quarantined` were not taken over;
# `agreement` is the share of others' answers to the same questions that are the same. `same_as` names whose answers
# these are, too; `why` says why nothing of somebody counts, and is null where something does.
RATERS = declare("""raters by annotator:
    annotator str, annotator_region str?, items u64, answers u64, counted u64, quarantined u64, checks u64,
    checks_failed u64, repeats u64, repeats_unlike u64, gold u64, gold_right u64, agreement f64?, minutes f64?,
    same_as str?, why str?""")

# Mean ratings by model, concept and country, within each pool; concept null is over all concepts. `sd` is over items,
# `within` the mean deviation of an item's own annotators; `mark` says `below 3` or `below 2`.
RATING_TABLE = declare("""rating_table by scheme criterion pool model concept country:
    scheme str, criterion str, pool str, model str, concept str?, country str?, mean f64, sd f64?, within f64?,
    items u64, annotators u64, answers u64, mark str?""")

# The share of each choice, such as of yes, by model, concept and country, within each pool.
CHOICE_TABLE = declare("""choice_table by scheme criterion pool model concept country choice:
    scheme str, criterion str, pool str, model str, concept str?, country str?, choice str, rate f64, items u64,
    answers u64""")

# Triplets to be shown: a reference and two images to compare it with, and their squared distances from it. `pick` says
# whether the reference was taken for its near or its far neighbour.
TRIPLETS = declare("""triplets by triplet_id:
    triplet_id str, combo str, object str, region str, reference_source str, source str, pick str, reference_id str,
    first_id str, second_id str, first_distance f64, second_distance f64;
    names: object region reference_source=real source=real;
    differ: reference_id first_id second_id""")

# What people said of triplets of images: `source` made the two images compared, `reference_source` the reference
# (`real` for photographs). `similar_id` and `appealing_id` name the one chosen; `shown` lists the images of the three
# that show the object, and is null where that was not asked. Places on the screen are not recorded: they were drawn.
TASK1 = declare(
    """task1 by triplet_id annotator_id:
    triplet_id str, combo str, object str, region str, reference_source str, source str, reference_id str,
    first_id str, second_id str, annotator_id str, annotator_loc str, similar_id str?, appealing_id str?,
    confidence str?, shown list[str]?;
    names: object region reference_source=real source=real confidence;
    belongs: triplet_id: combo object region reference_source source reference_id first_id second_id, annotator_id:
    annotator_loc;
    differ: reference_id first_id second_id""",
    among={
        "similar_id": "first_id second_id",
        "appealing_id": "first_id second_id",
        "shown": "reference_id first_id second_id",
    },
    allowed={"combo": "ABCDE"},
)

# What people saw in single images: whether the object is shown, and the regions (`af`, `eu`, `sea`, or `na` for none)
# that the object and the background could be from. `region` is the photograph's, or the prompt's; null where it named
# none. `source` is `real` or the model.
TASK2 = declare("""task2 by img_path object region annotator_id source:
    img_path str, object str, region str?, annotator_id str, annotator_loc str, shown bool, object_regions list[str],
    background_regions list[str], source str;
    names: object region source=real;
    belongs: img_path: object region source, annotator_id: annotator_loc""")

# How coders read answers to a survey: whether a theme is present in a response about a topic.
SURVEY_CODES = declare("""survey_codes by response_id topic code coder:
    response_id str, location str, topic str, coder str, code str, present bool;
    names: topic code;
    belongs: response_id: location""")

# The tables of scores, and of what scores are made of.

SCORES = declare("""scores by metric model benchmark concept country group params:
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str, value f64, ci_low f64?,
    ci_high f64?, n u64, unit str""")

# What scores are the means of, one row per item (an image, a prompt, a repeat of a prompt); the value is null where the
# item could not be scored. `metric` to `params` name the score that the value went into.
VALUES = declare("""values by metric model benchmark concept country group params item:
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str, item str,
    prompt_id str?, repeat u16?, value f64?""")

# How many images of a model show each label: of the continent, the country, the artifact. The label is null for images
# without one; the shares of a level sum to 1. The limits of a share take batches, a repeat of a prompt each, as a
# sample; they are null with fewer than 20.
DISTRIBUTIONS = declare("""distributions by model concept level label:
    model str, concept str?, level str, label str?, images u64, share f64, ci_low f64?, ci_high f64?""")

# How many images of a model two routes label differently: `label_a` by the one, `label_b` by the other, of the
# continent, the country or the artifact. The share is of the images for which both name a label of that level.
DISAGREEMENTS = declare("""disagreements by model concept level label_a label_b:
    model str, concept str?, level str, label_a str, label_b str, images u64, share f64""")

# How well descriptors of a prompt were met. `side` is `reference`: of so many images, which share shows the descriptor,
# and how similar their nearest prediction is on average; or `predicted`: so many images were described with it, and
# whether (1 or 0) and how closely a reference asks for it. Tokens are normalised.
DESCRIPTOR_MATCHES = declare("""descriptor_matches by model prompt_id dimension side token:
    model str, prompt_id str, dimension str, side str, token str, images u64, covered f64, similarity f64?""")

# By how much the images of a model score above real ones, on average, on each stereotype of a country.
EXAGGERATIONS = declare("""exaggerations by model country token:
    model str, country str, token str, images u64, real_mean f64, excess f64""")

# The items that a strategy keeps, best first; equal values stand in order of the items.
SELECTION = declare("selection by strategy rank: item str, strategy str, rank u32, value f64")

# How often annotators of a pool said yes to images whose score lies in the bucket that begins at `low`.
YES_BY_SCORE = declare("""yes_by_score by metric model pool low:
    metric str, model str, pool str, low f64, score f64, rate f64, ci_low f64?, ci_high f64?, images u64,
    answers u64""")

# How judgments of a model's images ended, task by task; concept null is over all concepts. An answer that is neither
# yes nor no has that as its outcome.
ANSWER_COUNTS = declare("""answer_counts by model concept task judge outcome:
    model str, concept str?, task str, judge str, outcome str, judgments u64, images u64""")

# How often each question was answered yes about a model's images. `void` counts images of which a parent was answered
# no, `failed` those that do not count for the question, and `rate` is their share of the images with an answer.
QUESTION_RATES = declare("""question_rates by judge model prompt_id question_id:
    judge str, model str, prompt_id str, question_id str, concept str?, text str, kind str, images u64, yes u64,
    no u64, unanswered u64, void u64, failed u64, rate f64?""")

TABLES: Mapping[str, Table] = {table.name: table for table in list(globals().values()) if isinstance(table, Table)}
"""By the name of the file that holds it: `candidates.parquet` holds `candidates`."""


OF_A_MODEL = "LLM:"
OF_A_LIST = "list:"  # a person's own file


def has_no_item(artifact_id: str) -> bool:
    """Tell whether an id is one that culturekit gives to artifacts without an item."""
    return artifact_id.startswith((OF_A_MODEL, OF_A_LIST)) and not artifact_id.endswith(":")


def without_prefix(artifact_id: str) -> str:
    """Give an id without the word for who named the artifact."""
    return artifact_id.removeprefix(OF_A_MODEL).removeprefix(OF_A_LIST)
