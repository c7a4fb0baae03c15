"""How far off a released number is: laws of sums, intervals, simulated errors, and the shares of a budget.

The covariance that these start from belongs to a drawing and is in `channels`, below this room.
"""
