"""For readers of a release: what the published files say about true counts, under a stated prior, and what other releases could have been.

Everything here reads public files only, in floating point; no promise depends on it.
"""

from holdfast.research.analysis import priors
from holdfast.research.analysis.posterior import posterior, simulate

__all__ = ["posterior", "priors", "simulate"]
