"""From public facts to a drawing: what is drawn, what is promised, which tasks, and which sampler draws each. No count comes here.

The covariance of the noise (covariance.py, rounding_error.py) is here and not in `accuracy`, because this room and `mechanisms` need it:
`mechanism.law(...)` has it, and a refusal names the variance of what could be drawn instead (alternatives.py). `accuracy` may import
both rooms, so neither can import it.
"""

from holdfast.channels.channel import Channel, Task
from holdfast.channels.drawing import Drawing, choose_samplers
from holdfast.channels.facts import Facts
from holdfast.channels.law import Law

__all__ = ["Channel", "Drawing", "Facts", "Law", "Task", "choose_samplers"]
