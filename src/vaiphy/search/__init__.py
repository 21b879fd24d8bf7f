"""Finding good trees: starting trees, rearrangements, hill climbing."""
