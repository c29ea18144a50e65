"""In how many simulated worlds the strategies of selection stand in their true order, by what people rate.

A world is a collection of pictures with captions in its language, translations and lists of objects that are right to
a dialled degree: those of `recipes/c3.yaml`, so that nothing is drawn and read again (its marks are read without
error). Each strategy keeps the same number of pairs; three people rate the relevance of every pair from 1 to 5. The true worth of a
strategy is the mean true alignment of the pairs that it keeps.
"""

import itertools
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from recording import record

from culturekit.builders.captions.selecting import SelectOptions, select_pairs
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated.captioning import CAPTIONING
from culturekit.builders.simulated.looking import LOOKING
from culturekit.builders.simulated.manner import Manner, Options
from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, things_of
from culturekit.families.c3 import C3Options, score_c3
from culturekit.generation.simulated.scenes.captions import all_named, spoken
from culturekit.generation.simulated.scenes.scene import scene_of
from culturekit.generation.simulated.scenes.scenes_backend import Options as Dials
from culturekit.generation.simulated.scenes.vocabulary import world
from culturekit.metrics.scoring.labelled_vectors import LabelledVectors
from culturekit.pipeline.c3.recipe import EVERY
from culturekit.pipeline.steps.caption_world_stages import alt_text, pair_truth, ratings_of
