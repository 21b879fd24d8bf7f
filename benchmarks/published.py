"""Published figures, as printed: the paper's Table 1 (Koptagel et al. 2022) and the consensus under Exp(10).

The paper's "DS7" (64 x 1008) is what everyone else calls DS8; it stands here under that name.
"""

#: MrBayes stepping stone, VBPI, ARTree and PhyloGFN agree on these within their errors.
CONSENSUS = {
    "DS1": -7108.4,
    "DS2": -26367.7,
    "DS3": -33735.1,
    "DS4": -13329.9,
    "DS5": -8214.5,
    "DS6": -6724.2,
    "DS7": -37332.0,
    "DS8": -8650.5,
}

#: (mean, standard deviation) by column.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "MrBayes SS": {
        "DS1": (-7032.45, 0.15), "DS2": (-26363.85, 0.33), "DS3": (-33729.60, 0.74), "DS4": (-13292.37, 1.42),
        "DS5": (-8192.96, 0.71), "DS6": (-6571.02, 0.81), "DS8": (-8438.78, 73.66),
    },
    "VBPI-NF": {
        "DS1": (-7108.40, 0.11), "DS2": (-26367.70, 0.03), "DS3": (-33735.09, 0.05), "DS4": (-13329.93, 0.11),
        "DS5": (-8214.61, 0.40), "DS6": (-6724.36, 0.37), "DS8": (-8650.49, 0.53),
    },
    "VCSMC (JC)": {
        "DS1": (-9180.34, 170.27), "DS2": (-28700.7, 4892.67), "DS3": (-37211.20, 397.97), "DS4": (-17106.10, 362.74),
        "DS5": (-9449.65, 2578.58), "DS6": (-9296.66, 2046.70),
    },
    "Vanilla CSMC": {
        "DS1": (-8306.76, 166.27), "DS2": (-27884.37, 226.60), "DS3": (-35381.01, 218.18), "DS4": (-15019.21, 100.61),
        "DS5": (-8940.62, 46.44), "DS6": (-8029.51, 83.67), "DS8": (-11013.57, 113.49),
    },
    "VaiPhy": {
        "DS1": (-7490.54, 0.0), "DS2": (-31203.44, 3e-12), "DS3": (-33911.13, 7e-12), "DS4": (-13700.86, 0.0),
        "DS5": (-8464.77, 0.0), "DS6": (-7157.84, 0.0), "DS8": (-9462.21, 1e-12),
    },
    "φ-CSMC": {
        "DS1": (-7290.36, 7.23), "DS2": (-30568.49, 31.34), "DS3": (-33798.06, 6.62), "DS4": (-13582.24, 35.08),
        "DS5": (-8367.51, 8.87), "DS6": (-7013.83, 16.99), "DS8": (-9209.18, 18.03),
    },
}  # fmt: skip

#: Lower bounds of one sample, VBPI with primary subsplit pairs (Zhang 2020).
LOWER_BOUNDS = {
    "DS1": -7110.24, "DS2": -26368.88, "DS3": -33736.22, "DS4": -13331.83, "DS5": -8217.80, "DS6": -6728.65, "DS7": -37334.85,
    "DS8": -8655.05,
}  # fmt: skip

#: Learnable parameters on DS1 (paper, section 5), in millions.
PARAMETERS = {"VBPI-NF": 8.4e6, "VaiPhy": 0.8e6}
