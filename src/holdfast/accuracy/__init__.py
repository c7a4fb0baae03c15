"""How far off a released number is: covariance of queries, laws of sums, intervals, and the shares of a budget."""
