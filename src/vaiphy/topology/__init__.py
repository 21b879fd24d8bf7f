"""Laws over trees, one a file: each samples trees with their log-density and evaluates the log-density of a given tree."""
