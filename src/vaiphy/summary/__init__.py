"""What samples and data amount to: support, consensus trees, credible sets, ancestral states, evidence from weights."""
