"""Trees, weighted samples of trees, trees as sets of splits, and how many trees there are."""
