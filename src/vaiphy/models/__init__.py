"""How sequences evolve: substitution models and priors, and data simulated from them."""
