"""A model and its priors in plain sentences, said at the start of every run."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import Alphabet
from vaiphy.models.blocks import Block
from vaiphy.models.columns import state_names
from vaiphy.models.grammar import ModelString, rate_code


def model_words(
    string: ModelString, alphabet: Alphabet, blocks: tuple[Block, ...], frequencies: NDArray[np.float64] | None
) -> list[str]:
    """Sentences about the rates of change, frequencies, rates across sites and which characters were kept."""
    priors = {block.name: block.prior for block in blocks}
    sentences = [f"Model {string} for {alphabet.kind}, {alphabet.n_states} states."]
    sentences.append(_rates(string, alphabet, priors))
    sentences.append(_frequencies(string, alphabet, priors, frequencies))
    sentences.append(_across_sites(string, priors))
    if string.ascertained:
        sentences.append("Likelihoods are given that no character is constant (+ASC).")
    return sentences


def _rates(string: ModelString, alphabet: Alphabet, priors: dict[str, str]) -> str:
    if "rates" in priors:
        if rate_code(string.name) == "010010":
            return f"Rates of transitions and transversions: free, {priors['rates']} on their shares, kappa their ratio."
        n_rates = len(set(rate_code(string.name)))
        return f"Exchangeabilities: {n_rates} distinct rates, free, {priors['rates']} on their shares."
    if string.rates is not None:
        return f"Exchangeabilities: fixed at {_list(string.rates)}."
    if string.name == "ORDERED":
        return "States change to the next or the previous one only, all such changes at one rate."
    if alphabet.name == "AA" and string.name != "Poisson":
        return f"Exchangeabilities: those of the {string.name} matrix."
    return "Exchangeabilities: all changes equally likely."


def _frequencies(string: ModelString, alphabet: Alphabet, priors: dict[str, str], frequencies: NDArray[np.float64] | None) -> str:
    if frequencies is None:
        return f"Frequencies: free, {priors['frequencies']}."
    if string.frequencies == "equal":
        return "Frequencies: equal."
    if string.frequencies == "matrix":
        return f"Frequencies: those of the {string.name} matrix."
    where = "counted in the data" if string.frequencies == "empirical" else "fixed"
    values = ", ".join(f"{name} {value:.4g}" for name, value in zip(state_names(alphabet), frequencies))
    return f"Frequencies: {where}, {values}."


def _across_sites(string: ModelString, priors: dict[str, str]) -> str:
    parts = []
    if string.gamma:
        shape = f"free, {priors['alpha']}" if "alpha" in priors else f"fixed at {string.alpha:g}"
        parts.append(f"gamma distributed in {string.n_categories} categories (their means), shape alpha {shape}")
    if string.invariable:
        share = f"free, {priors['p_inv']}" if "p_inv" in priors else f"fixed at {string.p_inv:g}"
        parts.append(f"a share p_inv of sites is invariable, {share}")
    return f"Rates across sites: {'; '.join(parts) if parts else 'all equal'}."


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
