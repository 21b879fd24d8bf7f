"""Distributions over trees, one a file: each samples trees with their log-density and evaluates that of a given tree."""
