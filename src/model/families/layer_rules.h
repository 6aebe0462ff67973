// The rules by which families set their layers apart, to be named in a row: `.pattern = every_last,
// .every = 6, .rotates = windowed_layers`. A rule that one family alone has stands beside its row.
#pragma once

#include "src/model/families/layers.h"

namespace posenc::detail {

// --- FamilyLayers::pattern: which layers are of the kind `other` ---------------------------------

LayerRule mark_all, mark_all_but_last_of, mark_all_but_first_of, mark_past_layer,
    mark_each_second_before, mark_off_period, mark_unlisted;

// All layers slide if there is a sliding_window (Mistral). The patterns with an optional window ask
// use_sliding_window first where the row has a window_switch (Qwen 3 MoE).
constexpr LayerPattern all_slide{mark_all, true};
// Layer i attends fully if (i + 1) % every == 0 (Gemma), or if i % every == 0 (ModernBERT).
constexpr LayerPattern every_last{mark_all_but_last_of}, every_first{mark_all_but_first_of};
// The window holds from max_window_layers on (Qwen 2), or for each second layer before it (Qwen 2
// MoE).
constexpr LayerPattern past_layer{mark_past_layer, true},
    each_second_before{mark_each_second_before, true};
// Layer i attends if i % attn_layer_period == attn_layer_offset (Jamba).
constexpr LayerPattern at_offset{mark_off_period};
// The file lists the layers that attend; without a list none does (Bamba).
constexpr LayerPattern listed_attend{mark_unlisted};

// --- FamilyLayers::rotates: which layers have a position -----------------------------------------

LayerRule no_layer;         // none: a recurrence carries the order (Jamba)
LayerRule windowed_layers;  // those that slide, unless the window is null (Cohere 2, EXAONE 4)
LayerRule listed_layers;    // no_rope_layers, or all but each no_rope_layer_interval-th (SmolLM3)

}  // namespace posenc::detail
