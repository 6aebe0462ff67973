#!/usr/bin/env python3
"""Positions of texts with pictures, videos and sound, as Ernie 4.5 VL, Qwen2.5-Omni and Qwen3-Omni number them: token ids
laid out by their processors' own code, numbered by their models' own get_rope_index; recorded in
tests/data/golden/vision_index.json.

  tests/peers/vision_positions.py > tests/data/golden/vision_index.json
"""

import json
import os
import random
from types import SimpleNamespace

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
from transformers.models.ernie4_5_vl_moe.modeling_ernie4_5_vl_moe import Ernie4_5_VLMoeModel
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniPreTrainedModelForConditionalGeneration as Qwen25Omni,
)
from transformers.models.qwen2_5_omni.processing_qwen2_5_omni import Qwen2_5OmniProcessor
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
    Qwen3OmniMoePreTrainedModelForConditionalGeneration as Qwen3Omni,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import _get_feat_extract_output_lengths
from transformers.models.qwen3_omni_moe.processing_qwen3_omni_moe import Qwen3OmniMoeProcessor

TEXT, IMAGE, VIDEO, AUDIO, VISION_BOS, VISION_EOS, AUDIO_BOS, AUDIO_EOS = 7, 101, 102, 103, 201, 202, 203, 204
MERGE = 2
LETTERS = {"v": VIDEO, "a": AUDIO, "<": AUDIO_BOS, ">": AUDIO_EOS}
random.seed(1)


def grid(frames):
    return [frames, MERGE * random.randint(1, 4), MERGE * random.randint(1, 5)]


def tokens(thw, frames=1):
    return thw[0] // frames * thw[1] * thw[2] // MERGE**2


def record(rule, ids, images, videos, seconds, rate, made):
    positions, delta = made
    positions = positions[:, 0]
    assert bool((positions == positions.long()).all()), "positions between whole numbers"
    return {
        "rule": rule,
        "input_ids": ids,
        "image_grid_thw": images,
        "video_grid_thw": videos,
        "seconds_per_grid": seconds,
        "tokens_per_second": rate,
        "tokens": [IMAGE, VIDEO, AUDIO],
        "spatial_merge_size": MERGE,
        "position_ids": positions.long().tolist(),
        "delta": int(delta.item()),
    }


def words():
    return [TEXT] * random.randint(1, 4)


def optional(grids):
    return torch.tensor(grids) if grids else None


def ernie():
    images, videos, ids = [], [], words()
    for _ in range(3):
        image = random.random() < 0.5
        (images if image else videos).append(grid(1 if image else 2 * random.randint(1, 4)))
        ids += [IMAGE if image else VIDEO] * (tokens(images[-1]) if image else tokens(videos[-1], 2)) + words()
    model = SimpleNamespace(
        config=SimpleNamespace(vision_config=SimpleNamespace(temporal_merge_size=2, spatial_merge_size=MERGE))
    )
    model.get_vision_position_ids = lambda *args, **more: Ernie4_5_VLMoeModel.get_vision_position_ids(model, *args, **more)
    kinds = torch.tensor([[1 if each == IMAGE else 2 if each == VIDEO else 0 for each in ids]])
    made = Ernie4_5_VLMoeModel.get_rope_index(model, torch.tensor([ids]), kinds, optional(images), optional(videos))
    return record("ernie4_5_vl", ids, images, videos, [], 2, made)


def omni(rule, with_sound):
    of_2 = rule == "qwen2_5_omni"
    cls, processor_class = (Qwen25Omni, Qwen2_5OmniProcessor) if of_2 else (Qwen3Omni, Qwen3OmniMoeProcessor)
    rate = 25 if of_2 else 13
    step = (lambda: random.choice([0.5, 2 / 3, 1.0, 0.08, 2.0])) if of_2 else (lambda: random.choice([1.0, 2.0]))
    heard = (
        (lambda n: ((n - 1) // 2 + 1 - 2) // 2 + 1) if of_2 else (lambda n: int(_get_feat_extract_output_lengths(n, 50)))
    )
    processor = SimpleNamespace(
        video_processor=SimpleNamespace(merge_size=MERGE),
        video_token="v",
        audio_token="a",
        audio_bos_token="<",
        audio_eos_token=">",
    )
    processor.get_chunked_index = lambda *args: processor_class.get_chunked_index(processor, *args)
    images, videos, seconds, lengths, ids = [], [], [], [], words()
    for _ in range(3):
        kind = random.choice(["image", "video", "sound"])
        if kind == "image":
            images.append(grid(1))
            ids += [VISION_BOS] + [IMAGE] * tokens(images[-1]) + [VISION_EOS]
        if kind == "sound":
            lengths.append(random.randint(20, 300))
            ids += [AUDIO_BOS] + [AUDIO] * heard(lengths[-1]) + [AUDIO_EOS]
        if kind == "video":
            videos.append(grid(random.randint(1, 6)))
            seconds.append(step())
            among = [VIDEO] * tokens(videos[-1])
            if with_sound:
                lengths.append(random.randint(20, 800))
                text = processor_class.replace_video_with_audio_token(
                    processor,
                    {"video_grid_thw": torch.tensor(videos), "video_second_per_grid": seconds},
                    len(videos) - 1,
                    {"num_audio_tokens": [heard(each) for each in lengths]},
                    len(lengths) - 1,
                    position_id_per_seconds=rate,
                    seconds_per_chunk=2,
                )
                among = [LETTERS[each] for each in text]
            ids += [VISION_BOS] + among + [VISION_EOS]
        ids += words()
    if not images and not videos:  # transformers numbers no text without either
        return omni(rule, with_sound)
    model = SimpleNamespace(
        spatial_merge_size=MERGE,
        config=SimpleNamespace(
            image_token_id=IMAGE,
            video_token_id=VIDEO,
            audio_token_id=AUDIO,
            vision_start_token_id=VISION_BOS,
            audio_start_token_id=AUDIO_BOS,
            position_id_per_seconds=rate,
            seconds_per_chunk=2,
            audio_config=SimpleNamespace(n_window=50),
        ),
    )
    for name in ("get_llm_pos_ids_for_vision", "get_chunked_index"):
        setattr(model, name, lambda *args, name=name, **more: getattr(cls, name)(model, *args, **more))
    made = cls.get_rope_index(
        model,
        torch.tensor([ids]),
        optional(images),
        optional(videos),
        torch.ones(1, len(ids), dtype=torch.long),
        with_sound and bool(videos),
        torch.tensor(lengths),
        torch.tensor(seconds),
    )
    return record(rule, ids, images, videos, seconds, rate, made)


made = [ernie() for _ in range(6)]
for rule in ("qwen2_5_omni", "qwen3_omni"):
    made += [omni(rule, with_sound) for with_sound in (False, True) for _ in range(8)]
rows = ",\n".join(json.dumps(each, separators=(",", ":")) for each in made)
print(f'{{"records":[\n{rows}\n]}}')
