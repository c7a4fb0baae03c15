"""What others do instead: noise on every cell, then a correction that makes the totals right again. For comparisons; nothing here releases.

l2, nonnegative_l2, l1          corrections of a noisy table ([GM20] section 4)
combined_noise, conditional_noise   the laws of two cells under one total, exactly ([GM20] Appendix A)
ContinuousConditional           continuous Laplace noise given the totals, in floating point ([GM20] Definition 1.1)
"""

from holdfast.research.baselines.continuous import ContinuousConditional
from holdfast.research.baselines.post_processing import PostProcessed, l1, l2, nonnegative_l2, post_processed_sentences
from holdfast.research.baselines.two_cells import ExponentialSum, combined_noise, conditional_noise
from holdfast.wording.dispatch import describe_as

__all__ = ["ContinuousConditional", "ExponentialSum", "PostProcessed", "combined_noise", "conditional_noise", "l1", "l2", "nonnegative_l2"]

describe_as(PostProcessed, post_processed_sentences)
