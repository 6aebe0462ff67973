#!/usr/bin/env python3
"""Positions by convolution, by families' own modules of transformers with random weights, in double: tokens before and after,
recorded in tests/data/golden/convolutions.json.

  tests/peers/convolutions.py > tests/data/golden/convolutions.json
"""

import json
import sys

import torch
import transformers
from tables import random, tensor
from transformers.models.data2vec import configuration_data2vec_audio, modeling_data2vec_audio
from transformers.models.florence2 import configuration_florence2, modeling_florence2
from transformers.models.hubert import configuration_hubert, modeling_hubert
from transformers.models.sew import configuration_sew, modeling_sew
from transformers.models.wav2vec2 import configuration_wav2vec2, modeling_wav2vec2

torch.set_default_dtype(torch.float64)

WIDTH, TOKENS = 12, 9


def randomized(module):
    module = module.double().eval()
    with torch.no_grad():
        for each in module.parameters():
            each.copy_(random(*each.shape) * 0.5)
    return module


def weight_of(conv):
    """What is stored, and what it stands for."""
    weights = conv.parametrizations.weight
    return {"lengths": tensor(weights.original0), "directions": tensor(weights.original1)}


def record(model, layers, x, y, **more):
    return {"model": model, "layers": layers, "x": tensor(x), "y": tensor(y), **more}


def wav2vec2():
    for groups, taps in ((3, 4), (2, 5)):
        config = configuration_wav2vec2.Wav2Vec2Config(hidden_size=WIDTH, num_conv_pos_embeddings=taps, num_conv_pos_embedding_groups=groups)
        module = randomized(modeling_wav2vec2.Wav2Vec2PositionalConvEmbedding(config))
        x = random(2, TOKENS, WIDTH)
        layer = {**weight_of(module.conv), "bias": tensor(module.conv.bias), "after": "gelu"}
        yield record("wav2vec 2.0", [layer], x, x + module(x))


def hubert():
    config = configuration_hubert.HubertConfig(hidden_size=WIDTH, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4)
    module = randomized(modeling_hubert.HubertPositionalConvEmbedding(config))
    x = random(1, TOKENS, WIDTH)
    layer = {**weight_of(module.conv), "bias": tensor(module.conv.bias), "after": "gelu"}
    yield record("HuBERT", [layer], x, x + module(x))


def sew():
    """Every second frame is kept, so that this is the convolution alone, without the sum."""
    config = configuration_sew.SEWConfig(hidden_size=WIDTH, num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=3, squeeze_factor=1)
    module = randomized(modeling_sew.SEWPositionalConvEmbedding(config))
    x = random(1, TOKENS, WIDTH)
    y = module(x.transpose(1, 2)).transpose(1, 2)
    layer = {**weight_of(module.conv), "bias": tensor(module.conv.bias), "after": "gelu"}
    yield record("SEW", [layer], x, y, adds=False)


def data2vec():
    config = configuration_data2vec_audio.Data2VecAudioConfig(
        hidden_size=WIDTH, conv_pos_kernel_size=5, num_conv_pos_embeddings=3, num_conv_pos_embedding_groups=3
    )
    module = randomized(modeling_data2vec_audio.Data2VecAudioPositionalConvEmbedding(config))
    x = random(2, TOKENS, WIDTH)
    layers = [
        {"weight": tensor(each.conv.weight), "bias": tensor(each.conv.bias), "after": "normalised_gelu"} for each in module.layers
    ]
    yield record("data2vec", layers, x, x + module(x))


def florence():
    """DaViT's convolution over 3 x 3 patches, each channel by itself: CPVT's generator of positions."""
    config = configuration_florence2.Florence2VisionConfig(embed_dim=[WIDTH], num_heads=[2], num_groups=[2], depths=[1])
    conv = randomized(modeling_florence2.Florence2VisionSpatialBlock(config, 0, 0.0).conv1)
    x = random(2, 4 * 5, WIDTH)
    grid = x.transpose(1, 2).reshape(2, WIDTH, 4, 5)
    layer = {"weight": tensor(conv.weight), "bias": tensor(conv.bias), "after": "none"}
    yield record("Florence-2", [layer], x, x + conv(grid).flatten(2).transpose(1, 2), grid=[4, 5])


FAMILIES = [wav2vec2, hubert, sew, data2vec, florence]


def main():
    torch.manual_seed(1)
    with torch.no_grad():
        records = [each for family in FAMILIES for each in family()]
    generator = f"tests/peers/convolutions.py, transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
    lines = ",\n".join(json.dumps(each) for each in records)
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
