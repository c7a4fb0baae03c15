"""Exact l1 Laplace noise on any lattice: a mixture of Gaussians whose variances are drawn by coupling from the past."""
