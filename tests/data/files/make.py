"""Writes the .npy and .safetensors files of this folder with the formats' own libraries.

    pip install numpy==2.4.6 safetensors==0.8.0 && python make.py
"""
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

HERE = Path(__file__).parent


def write_safetensors(name, arrays, metadata=None):
    """arrays: name -> array, or (dtype's name, array of its bits)."""
    specs, kept = {}, []
    for key, array in arrays.items():
        dtype, array = array if isinstance(array, tuple) else (array.dtype.name, array)
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        kept.append(array)
        specs[key] = TensorSpec(dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data,
                                data_len=array.nbytes)
    serialize_file(specs, HERE / name, metadata=metadata)


def main():
    for name, array in {
        "f8": np.arange(6.0).reshape(2, 3),
        "f4": np.arange(6, dtype="<f4").reshape(1, 2, 3),
        "f2": np.array([1.5, -2.0], dtype="<f2"),
        "u2": np.array([0x3FC0, 0xC000], dtype="<u2"),
        "i8": np.array([-1, 2**40], dtype="<i8"),
        "i4": np.array([[7]], dtype="<i4"),
        "u1": np.array([0, 255], dtype="|u1"),
        "b1": np.array([True, False]),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 3), dtype="<f4"),
    }.items():
        np.save(HERE / f"{name}.npy", array)

    write_safetensors("types.safetensors", {
        "f64": np.arange(6.0).reshape(2, 3),
        "f32": np.arange(6, dtype="<f4").reshape(3, 2) - 2,
        "f16": np.array([1.5, -2.0], dtype="<f2"),
        "bf16": ("bfloat16", np.array([0x3FC0, 0xC000], dtype="<u2")),
        "i64": np.array([-1, 2**40]),
        "bool": np.array([True, False, True]),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 3), dtype="<f4"),
        "five axes": np.zeros((1, 1, 1, 1, 2), dtype="<f4"),
    }, {"format": "np", "note": "NaN is a word here"})
    write_safetensors("none.safetensors", {})


if __name__ == "__main__":
    main()
