"""Distributions over branch lengths, one a file: each samples lengths with their log-density and evaluates given lengths."""
