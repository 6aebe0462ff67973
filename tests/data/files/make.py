"""Writes the .npy and .safetensors files of this folder with the formats' own libraries.

    pip install numpy==2.4.6 safetensors==0.8.0 && python make.py
"""
import json
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


def write_models():
    """Two small models as Hugging Face saves them: BERT whole, T5 in two shards."""
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return rng.standard_normal(shape).astype("<f4")

    bert = HERE / "bert"
    bert.mkdir(exist_ok=True)
    (bert / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 6}, indent=1) + "\n")
    write_safetensors("bert/model.safetensors", {
        "bert.embeddings.position_embeddings.weight":
            np.arange(48, dtype="<f4").reshape(6, 8) / 4,
        "bert.embeddings.word_embeddings.weight": numbers(5, 8),
    }, {"format": "pt"})

    t5 = HERE / "t5"
    t5.mkdir(exist_ok=True)
    (t5 / "config.json").write_text(json.dumps({
        "model_type": "t5", "d_model": 8, "d_kv": 4, "num_heads": 2, "num_layers": 1,
        "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20},
        indent=1) + "\n")
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    shards = {
        "model-00001-of-00002.safetensors": {
            "shared.weight": numbers(5, 8),
            f"encoder.{bias}": ("bfloat16", np.arange(16, dtype="<u2").reshape(8, 2) * 128 + 0x3F80),
        },
        "model-00002-of-00002.safetensors": {
            f"decoder.{bias}": np.arange(16, dtype="<f4").reshape(8, 2) / 2,
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": numbers(8, 2),
        },
    }
    for name, tensors in shards.items():
        write_safetensors(f"t5/{name}", tensors, {"format": "pt"})
    (t5 / "model.safetensors.index.json").write_text(json.dumps({
        "metadata": {"total_size": 320},
        "weight_map": {key: name for name, tensors in shards.items() for key in tensors}},
        indent=1) + "\n")


def main():
    write_models()
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
