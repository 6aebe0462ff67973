"""Frequencies and amplitude, read off what an engine's code returns."""

import numpy as np


def digits(values, count=9):
    return [float(f"{float(value):.{count}g}") for value in values]


def record(frequency, amplitude, pairing, rotary_dim, **more):
    """What is said of one layer; keys without a value are left out."""
    return {
        "frequency": digits(frequency),
        "amplitude": digits([amplitude], 7)[0],
        "pairing": pairing,
        "rotary_dim": int(rotary_dim),
        **{key: value for key, value in more.items() if value is not None},
    }


def of_cos_sin(cos, sin):
    """(frequency, amplitude) of the cosines and sines of position 1, one a pair."""
    cos, sin = np.asarray(cos, np.float64), np.asarray(sin, np.float64)
    amplitude = np.hypot(cos, sin)
    if np.ptp(amplitude) > 1e-5 * amplitude.max():
        raise ValueError("the pairs have different amplitudes")
    return np.arctan2(sin, cos), np.median(amplitude)


def of_matrix(rotated):
    """The record's first four of `rotated`: row i is what position 1 makes of a head that is 1 in channel i, else 0."""
    rotated = np.asarray(rotated, np.float64)
    size = len(rotated)
    across = np.abs(rotated - np.diag(np.diag(rotated)))
    step = int(across[0].argmax())  # from channel 0 to its partner
    if across[0, step] == 0:
        raise ValueError("channel 0 does not rotate")
    if step == 1:
        first = [i for i in range(0, size, 2) if across[i, i + 1] > 0]
        pairs = [(i, i + 1) for i in first]
        pairing, rotary_dim = "interleaved", 2 * len(pairs)
    else:
        pairs = [(i, i + step) for i in range(step)]
        pairing, rotary_dim = "halves", 2 * step
    frequency, amplitude = of_cos_sin([rotated[i, i] for i, _ in pairs], [rotated[i, j] for i, j in pairs])
    return frequency, amplitude, pairing, rotary_dim


def logits(scale, head_dim):
    """The factor on the logits beyond 1/sqrt(head_dim), or None where there is none or the scale is not known."""
    if scale is None:
        return None
    factor = digits([scale * head_dim**0.5], 7)[0]
    return None if abs(factor - 1) < 1e-6 else factor
