"""The numbers that many places share: each stands here once, with its unit and its reason."""

# How often intervals are to hold the truth: what readers expect of an interval that says nothing else.
CONFIDENCE = 0.95

BATCH_SIZE = 8  # Images in a batch of which diversity is scored: CUBE asks for eight at a time
PERMUTATIONS = 9999  # Draws of a permutation test: p values reach down to one in ten thousand

# Draws of a bootstrap where each is costly: limits are then known to about a hundredth of their distance.
RESAMPLES = 2000

CHEAP_RESAMPLES = 9999  # Draws of a bootstrap where each is cheap: BCa limits lie far out, where few draws fall
RATERS = 3  # People who judge each item: the fewest of whom one side is always the larger

# Answers that one person gives in an hour: 18 seconds each, with time to look something up now and then.
ANSWERS_PER_HOUR = 200.0

SHORTLIST = 12  # Artifacts that a form offers for each image: one screen of them

# A shard is what one worker takes at a time, and what a kill costs at most: seconds to minutes of work, and large
# enough that its marker and its part of the table weigh nothing beside it.

# Images asked of a generator, at least: rounded up to whole batches, so that only a last batch is filled up.
REQUESTS_PER_SHARD = 100

COPIES_PER_SHARD = 200  # Pictures that are read, checked and written again
PICTURES_PER_SHARD = 256  # Pictures that an encoder or a rater looks at, rounded up to its batches
TEXTS_PER_SHARD = 1024  # Texts that an encoder reads; each costs far less than a picture
MATCHES_PER_SHARD = 2000  # Images whose vectors are compared with an index
BLOCKS_PER_SHARD = 4  # Blocks of an index whose hubs are looked for; a block is as large as a comparison at once may be
BATCHES_PER_SHARD = 16  # Batches of images of which every pair is compared
TONES_PER_SHARD = 64  # Pictures in which faces are looked for and their skin is measured
