"""Laws on lattices: weights, covariance, tails."""
