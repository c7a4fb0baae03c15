"""From public facts to a drawing: what is drawn, what is promised, which tasks, and which sampler draws each."""

from holdfast.channels.channel import Channel, Task
from holdfast.channels.drawing import Drawing, choose_samplers
from holdfast.channels.facts import Facts
from holdfast.channels.law import Law

__all__ = ["Channel", "Drawing", "Facts", "Law", "Task", "choose_samplers"]
