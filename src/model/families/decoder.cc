// Models whose attention rotates queries and keys: the layers' pattern, what each kind of layer
// rotates by, its window, its logit scale and its cache. Encoders of the same build (ModernBERT)
// come here too.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "src/model/families/layers.h"
#include "src/model/families/rope.h"

namespace posenc::detail {
namespace {

class DecoderReader {
 public:
  DecoderReader(const Section& config, const Family& family)
      : config_(config), reading_(config.reading), family_(family) {}

  void read() {
    dims_ = read_dims(config_, family_, notes_);
    if (reading_.error) return;
    causal_ = family_.causal;
    const auto decoder = config_.flag("is_decoder");
    const auto both = config_.raw("use_bidirectional_attention");
    if (both && both->text() != "null" && both->text() != "false" && both->text() != "\"vision\"") {
      if (family_.reads_bidirectional) {
        causal_ = false;
      } else if (causal_) {
        warn_of_unread("use_bidirectional_attention");
      }
    }
    if (both && both->text() == "\"vision\"" && family_.reads_bidirectional)
      reading_.warn("family_remark", reading_.family + ": " + std::string(picture_blocks));
    // Hugging Face's masks ask it of every decoder, whose window then reaches as far to both sides.
    const auto causal = config_.flag("is_causal");
    const bool both_ways = causal_ && causal && !causal->value;
    if (both_ways) causal_ = false;
    if (decoder && !family_.causal) causal_ = decoder->value;
    layers_ = read_layers(config_, family_, dims_, notes_);
    const bool each_side = both_ways || (!causal_ && family_.window.each_side);
    behind_by_itself_ = !causal_ && family_.window.with_itself;
    if (each_side && layers_.window) *layers_.window *= 2;
    for (LayerKind& kind : layers_.kinds)
      if (each_side) kind.window *= 2;
    const bool grows = !causal_ && !each_side && family_.window.grows;
    if (grows && layers_.window) *layers_.window = 2 * (*layers_.window / 2 + 1);
    const bool in_chunks = std::ranges::any_of(
        layers_.kinds, [](const LayerKind& kind) { return is_chunked(kind.type); });
    if (!causal_ && !in_chunks)
      layers_.window_note.detail += each_side           ? ", on each side"
                                    : grows             ? ", half of it and one on each side"
                                    : behind_by_itself_ ? ", half of it on each side, the query "
                                                          "in the half before it"
                                                        : ", half of it on each side";
    if (both_ways && is_chunked(family_.layers.other)) {
      reading_.warn("causal_chunks", causal->key + " is false, and Hugging Face's code for " +
                                         reading_.family + " leaves its chunks causal");
    }
    warn_of_head_dim();
    warn_of_unread(any_window, family_.window.keys);
    if (!config_.has("layer_types")) warn_of_unread(any_every, family_.layers.every_keys);
    if (reading_.error) return;

    std::vector<LayerKind> kinds;  // in order of their first layer
    for (const LayerKind& kind : layers_.kinds) {
      if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
    for (const LayerKind& kind : kinds) {
      LayerGroup group = make_group(kind, kinds.size() > 1);
      if (reading_.error) return;
      reading_.model.groups.push_back(std::move(group));
    }
    set_context();
    warn_of_slopes();
    if (!family_.remark.empty()) reading_.warn("family_remark", family_.remark);
  }

 private:
  // Keys by which other families' code is told the same.
  void warn_of_unread(std::string_view names, std::string_view read = {}) {
    for (const std::string_view key : split(names)) {
      if (contains_word(read, key) || !config_.has(key) || says_a_window(key)) continue;
      reading_.warn("unread_key", config_.where(key) + " is " + config_.raw(key)->text() +
                                      ", which Hugging Face's code for " + reading_.family +
                                      " does not read; it has no effect");
    }
  }

  // The same number that another key gives to layers that slide, with the query or without it.
  bool says_a_window(std::string_view key) const {
    const auto* said = config_.raw(key)->get<std::int64_t>();
    return said && layers_.window && (*layers_.window == *said || *layers_.window == *said + 1);
  }

  // Families that read these keys never come here with such a value.
  void warn_of_slopes() {
    const auto alibi = config_.flag("alibi");
    const auto type = config_.word("position_embedding_type");
    const bool said = alibi && alibi->value, worded = type && type->value == "alibi";
    if (!said && !worded) return;
    reading_.warn("foreign_key",
                  (said ? alibi->key + " is true" : type->key + " is alibi") +
                      ", and Hugging Face's code for " + reading_.family +
                      " knows no ALiBi: queries and keys are rotated; drop the key, or "
                      "correct model_type");
  }

  // Where the rotated part has a width of its own, head_dim may say that, the rest or the whole.
  void warn_of_head_dim() {
    const auto said = config_.integer("head_dim");
    if (!said || said->value == dims_.head_dim || family_.heads.dim_rotates) return;
    const auto rotated = config_.integer("qk_rope_head_dim");
    const auto rest = config_.integer("qk_nope_head_dim");
    if (said->value == (rotated ? rotated->value : family_.attention.mla.rope)) return;
    if (said->value == (rest ? rest->value : family_.attention.mla.nope)) return;
    // The width over the heads, as tools fill it in.
    if (dims_.heads > 0 && said->value * dims_.heads == dims_.width) return;
    reading_.warn("unread_key", said->key + " is " + std::to_string(said->value) +
                                    ", and a head is " + std::to_string(dims_.head_dim) +
                                    " wide all the same");
  }

  LayerGroup make_group(const LayerKind& kind, bool several) {
    LayerGroup group;
    group.stack = causal_ ? Stack::text : Stack::encoder;
    group.causal = causal_;
    for (std::int64_t i = 0; i < dims_.layers; ++i) {
      if (layers_.kinds[static_cast<std::size_t>(i)] == kind) group.layers.push_back(i);
    }
    group.provenance = notes_;
    if (several) group.label = label(kind);
    ModelDims dims = dims_;
    own_heads(kind, dims, group.provenance);
    full_head_dim(kind, dims, group.provenance);
    group.geometry = dims.geometry();
    if (!has_attention(kind.type)) {
      set_mixer(mixer_of(kind.type), label(kind), group);
      return group;
    }
    if (has_window(kind.type)) {
      group.window = kind.window > 0 ? kind.window : layers_.window;
      group.chunked = is_chunked(kind.type);
      if (behind_by_itself_ && group.window) group.behind = (*group.window + 1) / 2 - 1;
      if (kind.window == 0 && !layers_.window_note.field.empty())
        group.provenance.push_back(layers_.window_note);
    }
    add_rotation(kind, dims, group);
    if (family_.attention.logits) family_.attention.logits(config_, group);
    group.learned_factors = family_.rope.learned_factors;
    group.sink_logits = family_.attention.sinks == Sinks::all ||
                        (family_.attention.sinks == Sinks::windowed && has_window(kind.type));
    if (kind.type == cross_attention) {
      group.causal = false;
      group.cache_note = "keys and values are the picture's: nothing for each token";
      return group;
    }
    add_cache(kind, dims, group);
    add_indexer(kind, group);
    return group;
  }

  static std::string label(const LayerKind& kind) {
    std::string text = kind.type;
    std::ranges::replace(text, '_', ' ');
    if (kind.theta > 0) text += ", base " + number_text(kind.theta);
    if (kind.heads > 0) text += ", " + std::to_string(kind.heads) + " heads";
    if (kind.kv_heads > 0) text += ", " + std::to_string(kind.kv_heads) + " kv heads";
    if (kind.window > 0) text += ", window " + std::to_string(kind.window);
    if (!kind.picks) text += ", keys picked by a layer before";
    if (kind.passes > 1) text += ", run " + std::to_string(kind.passes) + " times";
    return kind.rotates || !has_attention(kind.type) ? text : text + " without position";
  }

  void own_heads(const LayerKind& kind, ModelDims& dims, ProvenanceList& notes) {
    const auto own = [&](std::string_view field, std::int64_t heads, std::string_view key,
                         std::int64_t& all) {
      if (heads == 0) return;
      all = heads;
      std::erase_if(notes, [&](const Provenance& value) { return value.field == field; });
      note(notes, field, std::to_string(heads), Origin::file,
           config_.where(key.empty() ? "block_configs" : key));
    };
    own("heads", kind.heads, family_.heads.of_layers, dims.heads);
    own("kv_heads", kind.kv_heads, family_.heads.kv_of_layers, dims.kv_heads);
    if (family_.heads.local_kv_key.empty() || !has_window(kind.type)) return;
    const Range range{.least = 1, .most = static_cast<double>(most_heads)};
    const auto local = config_.integer(family_.heads.local_kv_key, range);
    own("kv_heads", local ? local->value : family_.heads.local_kv, family_.heads.local_kv_key,
        dims.kv_heads);
    if (!local) {
      notes.back().origin = Origin::family;
      notes.back().detail = "default of " + reading_.family;
    }
    if (dims.heads % dims.kv_heads != 0)
      reading_.refuse(config_.where(family_.heads.local_kv_key), "must divide the query heads",
                      std::to_string(dims.kv_heads), "correct it");
  }

  // Layers with full attention may have wider and fewer heads than those with a window (Gemma 4).
  void full_head_dim(const LayerKind& kind, ModelDims& dims, ProvenanceList& notes) {
    if (has_window(kind.type) || family_.heads.full_dim == 0) return;
    const Range range{.least = 1, .most = static_cast<double>(most_head_dim)};
    const auto wide = config_.integer("global_head_dim", range);
    dims.head_dim = dims.value_dim = wide ? wide->value : family_.heads.full_dim;
    note(notes, "head_dim", std::to_string(dims.head_dim), wide ? Origin::file : Origin::family,
         wide ? wide->key : "default of " + reading_.family);
    const auto same = config_.flag("attention_k_eq_v");
    const auto few = config_.integer("num_global_key_value_heads", range);
    if (few && same && same->value) {
      dims.kv_heads = few->value;
      note(notes, "kv_heads", std::to_string(few->value), Origin::file, few->key);
      if (dims.heads % dims.kv_heads != 0) {
        reading_.refuse(few->key, "must divide the query heads", std::to_string(few->value),
                        "correct it");
      }
    }
  }

  void add_rotation(const LayerKind& kind, const ModelDims& dims, LayerGroup& group) {
    RopeAsk ask{.layer_type = kind.type,
                .local = has_window(kind.type),
                .head_dim = dims.head_dim,
                .rotary_dim = {},
                .context = dims.context,
                .theta = kind.theta,
                .unscaled = !kind.scaled};
    if (family_.attention.schemes) return family_.attention.schemes(config_, group);
    if (!kind.rotates) {
      group.schemes = {NoPe{}};
      if (family_.attention.scale_logits) scale_logits(kind, ask, dims, group);
      return;
    }
    ask.rotary_dim = rotary_dim(kind, dims, group.provenance);
    RopeFound found = read_rope(config_, family_, ask, group.provenance);
    if (!found.rope) {
      group.schemes = {NoPe{}};
      return;
    }
    if (family_.attention.mla.nope > 0 || family_.attention.keys_are_values) {
      found.rope->slice = SliceEnd::trailing;
      note(group.provenance, "slice", "trailing", Origin::family,
           "a head is [no position, rotated]");
    }
    if (family_.attention.keys_are_values) {
      found.rope->rotate_values = true;
      note(group.provenance, "rotate_values", "true", Origin::family,
           "keys serve as values, and the output is rotated back");
    }
    read_values(*found.rope, group.provenance);
    if (family_.slice.rotated_heads > 0) {
      found.rope->rotated_heads = family_.slice.rotated_heads;
      note(group.provenance, "rotated_heads", std::to_string(family_.slice.rotated_heads),
           Origin::family, "rule of " + reading_.family);
    }
    found.rope->reversed = family_.rope.reversed;
    pairing_switch(*found.rope, group.provenance);
    original_ = std::max(original_, found.original);
    // A family's own NTK ends in a divisor too, which is no ratio of lengths.
    const bool is_ntk =
        std::ranges::find(group.provenance, "ntk", &Provenance::field) != group.provenance.end();
    if (std::holds_alternative<Linear>(found.rope->scaling) && !is_ntk)
      interpolated_ = std::max(interpolated_, number_of(found.rope->scaling, "factor").value_or(1));
    // Llama-3's factor divides the slow pairs and does not mean a ratio of lengths.
    if (!number_of(found.rope->scaling, "low_freq_factor")) {
      extended_ = std::max(extended_, number_of(found.rope->scaling, "factor").value_or(0) *
                                          static_cast<double>(found.original));
    }
    if (found.beta > 0) {
      group.logits.beta = found.beta;
      const std::int64_t trained = found.original > 0 ? found.original : dims.context;
      group.logits.floor = found.beta_floor > 0 ? found.beta_floor : static_cast<double>(trained);
      group.logits_note = "llama_4_scaling_beta " + number_text(found.beta);
    }
    read_dual_chunks(*found.rope, group.provenance);
    if (found.mixes) {
      group.schemes = {Fope{.rope_theta = found.rope->rope_theta,
                            .max_position_embeddings = dims.context,
                            .num_inv_freq = found.mixed}};
      note(group.provenance, "rest_sine", "1", Origin::family,
           "pairs without a mixture have cosine and sine 1");
      return;
    }
    group.schemes = {std::move(*found.rope)};
  }

  // Values that are rotated as keys are, where the output is not rotated back.
  void read_values(Rope& rope, ProvenanceList& notes) {
    const auto said = config_.flag(family_.rope.values_key);
    if (!family_.rope.values_stay && !(said && said->value)) return;
    rope.rotate_values = rope.values_stay = true;
    note(notes, "rotate_values", "true, and they stay", said ? Origin::file : Origin::family,
         said ? said->key : "rule of " + reading_.family);
  }

  // Qwen2.5-1M's, whose published code (a fork of vLLM) alone reads it.
  void read_dual_chunks(Rope& rope, ProvenanceList& notes) {
    const Section chunks = config_.section("dual_chunk_attention_config");
    if (!chunks) return;
    const Range tokens{.least = 1, .most = 1e12};
    const auto size = chunks.integer("chunk_size", tokens);
    const auto local = chunks.integer("local_size", Range{.least = 0, .most = 1e12});
    if (!size || !local || local->value >= size->value) {
      reading_.warn("ignored_key", chunks.path() +
                                       " has no chunk_size above a local_size, without which there "
                                       "are no chunks; the plan is that without it");
      return;
    }
    const DualChunk map{.chunk_size = size->value, .local_size = local->value};
    rope.distance_map = map;
    note(notes, "distance_map", std::string(map.name), Origin::file, chunks.path());
    note(notes, "chunk_size", std::to_string(map.chunk_size), Origin::file, size->key);
    note(notes, "local_size", std::to_string(map.local_size), Origin::file, local->key);
    reading_.warn("ignored_key", chunks.path() +
                                     ": Hugging Face's code does not read it, and "
                                     "rotates plainly beyond the first chunk of " +
                                     std::to_string(map.chunk()) +
                                     " tokens; the plan is dual chunk attention, as the model's "
                                     "authors serve it");
  }

  // Such a family multiplies the logits by YaRN's factor in every layer, also where nothing
  // rotates.
  void scale_logits(const LayerKind& kind, RopeAsk ask, const ModelDims& dims, LayerGroup& group) {
    ProvenanceList notes;
    ask.rotary_dim = rotary_dim(kind, dims, notes);
    const RopeFound found = read_rope(config_, family_, ask, notes);
    if (!found.rope) return;
    const Expected<Plan> plan = compile(Scheme{*found.rope}, dims.geometry());
    if (!plan || plan->logits.multiplier == 1) return;
    group.logits.multiplier = plan->logits.multiplier;
    group.logits_note = "YaRN's (0.1·mscale_all_dim·ln s + 1)²";
    std::ranges::copy_if(notes, std::back_inserter(group.provenance), [](const Provenance& each) {
      return each.field == "factor" || each.field == "mscale_all_dim" ||
             each.field == "scale_logits";
    });
  }

  // The family's rule for how much of a head rotates, where it is not partial_rotary_factor's.
  std::optional<std::int64_t> rotary_dim(const LayerKind& kind, const ModelDims& dims,
                                         ProvenanceList& notes) {
    const auto by = [&](std::int64_t channels, Origin origin, std::string_view detail) {
      note(notes, "rotary_dim", std::to_string(channels), origin, detail);
      return channels;
    };
    if (kind.part > 0 && kind.part < 1)
      return by(std::llround(kind.part * static_cast<double>(dims.head_dim)) / 2 * 2, Origin::file,
                "partial_rotary_factors");
    if (family_.attention.mla.nope > 0) {
      ProvenanceList unused;
      return by(latent_rotated(config_, family_, unused), Origin::derived, "qk_rope_head_dim");
    }
    if (has_window(kind.type) && !family_.local.rotary_dim.empty()) {
      const Range range{.least = 2, .most = static_cast<double>(dims.head_dim)};
      if (const auto local = config_.integer(family_.local.rotary_dim, range))
        return by(local->value, Origin::file, local->key);
    }
    if (family_.slice.rotary_half)
      return by(dims.head_dim / 2, Origin::family, "half of kv_channels");
    // null in the file is the whole head, and only a missing key means the default.
    if (family_.slice.rotary_dim > 0 && !config_.raw("rotary_dim"))
      return by(std::min(family_.slice.rotary_dim, dims.head_dim), Origin::family,
                "default of " + reading_.family);
    return std::nullopt;
  }

  // Some files say which pairing the weights are for (DeepSeek-V3, Nomic BERT).
  void pairing_switch(Rope& rope, ProvenanceList& notes) {
    if (family_.rope.pairing_key.empty()) return;
    const auto interleave = config_.flag(family_.rope.pairing_key);
    if (!interleave) return;
    rope.pairing = interleave->value ? Pairing::interleaved : Pairing::halves;
    note(notes, "pairing", name(rope.pairing), Origin::file, interleave->key);
  }

  void add_cache(const LayerKind& kind, const ModelDims& dims, LayerGroup& group) {
    set_cache(group, dims);
    if (!group.causal) return;
    if (family_.attention.mla.nope > 0) {
      ProvenanceList unused;
      const std::int64_t rank =
          config_.size(unused, "", "kv_lora_rank", family_.attention.mla.rank, most_width);
      const std::int64_t rotated = latent_rotated(config_, family_, unused);
      group.cache_elements = rank + rotated;
      group.cache_note =
          "compressed: " + std::to_string(rank) + " + " + std::to_string(rotated) + " (MLA)";
    }
    if (family_.attention.keys_are_values) {
      group.cache_elements = dims.kv_heads * dims.head_dim;
      group.cache_note = std::to_string(dims.head_dim) + ", keys that serve as values";
    }
    if (kind.shares) {
      group.cache_elements = 0;
      group.cache_note = "an earlier layer's keys and values are used again";
      return;
    }
    if (kind.passes > 1) {
      group.cache_elements *= kind.passes;
      group.cache_note = std::to_string(kind.passes) + " times " + group.cache_note;
    }
    if (group.window && (dims.context == 0 || *group.window < dims.context)) {
      const std::string tokens = std::to_string(*group.window) + " tokens";
      group.cache_note += group.chunked ? "; only the chunk being read is needed, up to " + tokens
                                        : "; only the last " + tokens + " are needed";
    }
  }

  // What an indexer picks, and its keys: one for each token, which all of its heads share.
  void add_indexer(const LayerKind& kind, LayerGroup& group) {
    const FamilyIndexer& indexer = family_.attention.indexer;
    if (indexer.most == 0 || (!indexer.kind.empty() && kind.type != indexer.kind)) return;
    const Range range{.least = 1, .most = static_cast<double>(most_length)};
    const auto number = [&](std::string_view field, std::string_view keys, std::int64_t otherwise) {
      const auto said = config_.integer(keys, range);
      const std::int64_t value = said ? said->value : otherwise;
      if (value > 0 && !keys.empty())
        note(group.provenance, field, std::to_string(value), said ? Origin::file : Origin::family,
             said ? said->key : "default of " + reading_.family);
      return value;
    };
    const std::int64_t most = number("picked", indexer.most_keys, indexer.most);
    const std::int64_t width = number("indexer_dim", indexer.width_keys, indexer.width);
    if (most < 1 || width < 1 || reading_.error) return;
    const std::int64_t block = number("picked_block", indexer.block_keys, indexer.block);
    const auto local = config_.integer("index_local_blocks", not_negative);
    group.picked = {.count = indexer.most_in_tokens ? most / block : most,
                    .block = block,
                    .local = local ? local->value : indexer.local};
    if (!kind.picks) return;
    const std::int64_t heads = number("indexer_heads", indexer.heads_keys, indexer.heads);
    Indexer own{.heads = std::max<std::int64_t>(heads, 0),
                .head_dim = width,
                .slice = indexer.slice,
                .keys = {.elements = indexer.caches_gates ? 2 * width + 1 : width,
                         .every = std::max<std::int64_t>(group.compressed, 1),
                         .note = indexer.caches_gates ? "keys, gates and flags of the indexer"
                                                      : "keys of the indexer"}};
    group.cache_beside.push_back(own.keys);
    if (indexer.learned_temperature) own.logits = {.temperature = Temperature::heads, .offset = 1};
    if (index_rotation(group, own)) group.indexer = std::move(own);
  }

  // As many channels of its heads rotate as of the group's.
  bool index_rotation(LayerGroup& group, Indexer& own) {
    const auto* rope = std::get_if<Rope>(&group.schemes.front());
    if (!rope) return true;
    const Expected<Plan> plan = compile(Scheme{*rope}, group.geometry);
    if (!plan || !plan->rotate) return false;
    own.rotary_dim = plan->rotate->slice.rotary_dim;
    own.pairing = family_.attention.indexer.pairing.value_or(rope->pairing);
    if (const auto neighbours = config_.flag("indexer_rope_interleave")) {
      own.pairing = neighbours->value ? Pairing::interleaved : Pairing::halves;
      note(group.provenance, "indexer_pairing", name(own.pairing), Origin::file, neighbours->key);
    }
    if (own.rotary_dim <= own.head_dim) return true;
    reading_.warn("ignored_key",
                  config_.where(family_.attention.indexer.width_keys) + " is " +
                      std::to_string(own.head_dim) + ", fewer channels than the " +
                      std::to_string(own.rotary_dim) +
                      " that rotate: no plan says what becomes of the indexer's keys");
    return false;
  }

  void set_context() {
    Model& model = reading_.model;
    if (model.context > 0) return;
    // What the file says holds, even where its scaling reaches further: a lint tells of the
    // difference.
    const double reached = std::min(std::round(extended_), static_cast<double>(most_length));
    model.context = dims_.context > 0 ? dims_.context : static_cast<std::int64_t>(reached);
    model.trained_context = original_ > 0 ? original_ : model.context;
    // Position interpolation names no trained length: the context is what it reaches, its positions
    // divided by the factor lie where training had them.
    if (original_ == 0 && interpolated_ > 1)
      model.trained_context = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(model.context) / interpolated_));
  }

  const Section& config_;
  Reading& reading_;
  const Family& family_;
  ProvenanceList notes_;  // of every group
  ModelDims dims_;
  bool causal_ = true;
  bool behind_by_itself_ = false;  // half of a window counts the query too
  Layers layers_;
  std::int64_t original_ = 0;  // trained length, as the scalings say
  double extended_ = 0;        // factor times that
  double interpolated_ = 1;    // factor of position interpolation
};

}  // namespace

void read_decoder(const Section& config, const Family& family) {
  DecoderReader(config, family).read();
}

// DBRX says its key-value heads and its base inside attn_config.
void read_dbrx(const Section& config, const Family& family) {
  const Section attention = config.section("attn_config");
  const auto kv_heads =
      attention.integer("kv_n_heads", Range{.least = 1, .most = static_cast<double>(most_heads)});
  const auto theta = attention.number("rope_theta", above_one);
  Family filled = family;
  if (kv_heads) filled.sizes.kv_heads = kv_heads->value;
  if (theta) filled.rope.theta = theta->value;
  read_decoder(config, filled);
  for (LayerGroup& group : config.reading.model.groups) {
    for (Provenance& value : group.provenance) {
      const bool heads = kv_heads && value.field == "kv_heads";
      if (value.origin != Origin::family || !(heads || (theta && value.field == "rope_theta")))
        continue;
      value.origin = Origin::file;
      value.detail = heads ? kv_heads->key : theta->key;
    }
  }
}

}  // namespace posenc::detail
