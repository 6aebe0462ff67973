// A GGUF's layers in Hugging Face's words: how many there are, which attend, slide, and with how
// many heads. A number may stand in a list with an entry for each layer.
#include <algorithm>
#include <string>
#include <utility>

#include "src/model/families/layer_rules.h"
#include "src/model/families/layers.h"
#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

using LayerNumbers = std::vector<std::int64_t>;

constexpr std::string_view pattern_key = "attention.sliding_window_pattern",
                           recurrent_key = "attention.recurrent_layers",
                           head_key = "attention.head_count",
                           kv_head_key = "attention.head_count_kv";

// Layers that predict further tokens come last in block_count and are no part of the stack; a stack
// that is run again has as many layers more.
void count_layers(GgufTranslation& gguf) {
  gguf.spell("num_hidden_layers", gguf.path("block_count"));
  const auto blocks = gguf.whole("block_count"), extra = gguf.whole("nextn_predict_layers"),
             loops = gguf.whole("num_loops");
  if (!blocks) return;
  std::int64_t layers = *blocks;
  std::string said = gguf.path("block_count");
  if (extra && *extra > 0 && *extra < layers) {
    layers -= *extra;
    said += " − " + gguf.path("nextn_predict_layers");
  }
  if (loops && *loops > 1 && layers <= most_layers && *loops <= most_layers) {
    layers *= *loops;
    said = gguf.path("num_loops") + " · " + said;
  }
  gguf.set_layers(layers);
  gguf.drop("num_hidden_layers");
  gguf.put("num_hidden_layers", {layers}, said);
}

bool list_covers_layers(const GgufTranslation& gguf, std::string_view key,
                        const LayerNumbers* each) {
  if (!each || std::ssize(*each) >= gguf.layers()) return true;
  gguf.reading().refuse(
      gguf.path(key), "must have an entry for each of " + std::to_string(gguf.layers()) + " layers",
      std::to_string(each->size()), "the file is damaged");
  return false;
}

// The list, where layers are unlike; layers without attention do not count.
const LayerNumbers* unlike(const GgufTranslation& gguf, std::string_view key) {
  const auto* each = gguf.get<LayerNumbers>(key);
  if (!each || gguf.layers() == 0 || !list_covers_layers(gguf, key, each)) return nullptr;
  std::int64_t common = 0;
  for (std::int64_t i = 0; i < gguf.layers(); ++i) {
    const std::int64_t count = (*each)[static_cast<std::size_t>(i)];
    if (count != 0 && common != 0 && count != common) return each;
    if (count != 0) common = count;
  }
  return nullptr;
}

void put_heads(GgufTranslation& gguf, std::string_view key, std::string_view name) {
  gguf.spell(name, gguf.path(key));
  const GgufValue* value = gguf.find(key);
  if (!value) return;
  const auto* each = std::get_if<LayerNumbers>(value);
  if (!each) return gguf.put(name, json(*value), gguf.path(key));
  const auto first = std::ranges::find_if(*each, [](std::int64_t count) { return count != 0; });
  gguf.put(name, {first == each->end() ? std::int64_t{0} : *first}, gguf.path(key));
}

void put_list(GgufTranslation& gguf, std::string_view name, const LayerNumbers& each,
              std::string_view key) {
  Json::Array list;
  for (std::int64_t i = 0; i < gguf.layers(); ++i)
    list.push_back({each[static_cast<std::size_t>(i)]});
  gguf.put(name, {std::move(list)}, gguf.path(key));
}

// The number that all layers share, and a list where they share none. The compressed cache of
// latent attention counts as one head, and is not what a layer has.
void translate_heads(GgufTranslation& gguf) {
  put_heads(gguf, head_key, "num_attention_heads");
  if (!gguf.latent()) put_heads(gguf, kv_head_key, "num_key_value_heads");
  const LayerNumbers* heads = unlike(gguf, head_key);
  const LayerNumbers* kv_heads = gguf.latent() ? nullptr : unlike(gguf, kv_head_key);
  const Family* base = gguf.base();
  const bool read = !base || base->read == read_decoder || base->read == read_recurrence;
  if ((heads || kv_heads) && !read) {
    gguf.reading().refuse(gguf.path(heads ? head_key : kv_head_key),
                          "must be one number: layers with unlike heads are not covered here");
    return;
  }
  if (heads) put_list(gguf, "heads_of_layers", *heads, head_key);
  if (kv_heads) put_list(gguf, "kv_heads_of_layers", *kv_heads, kv_head_key);
}

// DeepSeek's heads: [no position, rotated]. The converter writes the width of the compressed
// cache as key_length since it writes key_length_mla.
void translate_latent(GgufTranslation& gguf) {
  const auto own = gguf.whole("attention.key_length_mla");
  const auto key = own ? own : gguf.whole("attention.key_length");
  const bool compressed = gguf.row() && reads_key(*gguf.row(), "attention.key_length_mla");
  const auto rotated = gguf.whole("rope.dimension_count");
  if (!key || !rotated || *rotated >= *key) {
    gguf.reading().refuse(gguf.path(key          ? "rope.dimension_count"
                                    : compressed ? "attention.key_length_mla"
                                                 : "attention.key_length"),
                          key && rotated ? "must be below the head's width" : "is missing", "",
                          "the file is damaged");
    return;
  }
  gguf.drop("rotary_dim head_dim v_head_dim");
  gguf.put("qk_rope_head_dim", {*rotated}, gguf.path("rope.dimension_count"));
  gguf.put("qk_nope_head_dim", {*key - *rotated},
           gguf.path(own ? "attention.key_length_mla" : "attention.key_length") + " − " +
               gguf.path("rope.dimension_count"));
  const std::string_view value_key = gguf.find("attention.value_length_mla")
                                         ? "attention.value_length_mla"
                                         : "attention.value_length";
  if (const auto value = gguf.whole(value_key))
    gguf.put("v_head_dim", {*value}, gguf.path(value_key));
}

// Which layers have what: lists of the file. Without key-value heads a layer has no attention,
// whatever the pattern of windows says of it.
struct LayerLists {
  const LayerNumbers* slides = nullptr;
  const LayerNumbers* recurrent = nullptr;
  const LayerNumbers* heads = nullptr;
  const LayerNumbers* perceptrons = nullptr;
  bool all_slide = false;
  bool left_out = false;  // where there are no heads there is nothing (Nemotron-NAS)

  bool empty() const { return !slides && !recurrent && !heads && !all_slide; }
  bool attends(std::size_t i) const {
    return (!heads || (*heads)[i] != 0) && (!recurrent || (*recurrent)[i] == 0);
  }
  bool has_window(std::size_t i) const { return all_slide || (slides && (*slides)[i] != 0); }
  // Of a layer that attends not: where a family has two kinds, that with a perceptron has no
  // recurrence.
  std::string_view other(std::size_t i, std::string_view of_family) const {
    if (left_out) return "mlp";
    if (detail::has_window(of_family)) return "mamba";
    if (of_family != unsaid_layer || !perceptrons || i >= perceptrons->size()) return of_family;
    return (*perceptrons)[i] != 0 ? "mlp" : "mamba";
  }
};

LayerLists lists_of(const GgufTranslation& gguf) {
  LayerLists lists{.slides = gguf.slides() ? gguf.get<LayerNumbers>(pattern_key) : nullptr,
                   .recurrent = gguf.get<LayerNumbers>(recurrent_key),
                   .heads = gguf.get<LayerNumbers>(kv_head_key),
                   .perceptrons = gguf.get<LayerNumbers>("feed_forward_length")};
  const Architecture* row = gguf.row();
  lists.left_out = row && contains_word(row->leaves_out, gguf.architecture());
  const bool by_interval = row && contains_word(row->reads, recurrent_key);
  if (lists.heads && (by_interval || std::ranges::find(*lists.heads, 0) == lists.heads->end()))
    lists.heads = nullptr;
  lists.all_slide = row && row->pattern.mark == all_slide.mark && gguf.slides() && !lists.slides;
  return lists;
}

// A list decides, and else a period: of the file, or of the architecture's row.
void translate_layer_types(GgufTranslation& gguf) {
  const LayerLists lists = lists_of(gguf);
  const GgufValue* period = gguf.slides() && !lists.slides ? gguf.find(pattern_key) : nullptr;
  if (period) gguf.put("sliding_window_pattern", json(*period), gguf.path(pattern_key));
  const Architecture* row = gguf.row();
  if (row && row->slides != Slides::never && gguf.slides() && !row->pattern.mark && !lists.slides) {
    gguf.reading().refuse(gguf.path(pattern_key), "is missing: an entry for each layer", "",
                          "say which layers slide");
    return;
  }
  if (gguf.layers() < 1 || gguf.layers() > most_layers || lists.empty()) return;
  if (!list_covers_layers(gguf, pattern_key, lists.slides) ||
      !list_covers_layers(gguf, recurrent_key, lists.recurrent) ||
      !list_covers_layers(gguf, kv_head_key, lists.heads))
    return;
  const std::string_view other = gguf.base() ? gguf.base()->layers.other : "mamba";
  const bool windows = has_window(other);
  Json::Array types;
  for (std::size_t i = 0; std::ssize(types) < gguf.layers(); ++i) {
    types.push_back({std::string(!lists.attends(i)     ? lists.other(i, other)
                                 : lists.has_window(i) ? (windows ? other : "sliding_attention")
                                                       : "full_attention")});
  }
  gguf.put("layer_types", {std::move(types)},
           gguf.path(lists.slides      ? pattern_key
                     : lists.recurrent ? recurrent_key
                     : lists.heads     ? kv_head_key
                                       : "attention.sliding_window"));
}

}  // namespace

void translate_layers(GgufTranslation& gguf) {
  count_layers(gguf);
  translate_heads(gguf);
  translate_layer_types(gguf);
  if (gguf.latent()) translate_latent(gguf);
}

}  // namespace posenc::detail
