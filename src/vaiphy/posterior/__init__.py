"""The posterior of trees, branch lengths and model parameters together: proposals learned, bridged to the posterior, weighed."""
