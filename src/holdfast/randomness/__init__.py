"""Secret keys and labelled streams of words. Imports nothing of ours but errors."""

from holdfast.randomness.keys import NoiseKey
from holdfast.randomness.streams import Stream
from holdfast.randomness.words import Words

__all__ = ["NoiseKey", "Stream", "Words"]
