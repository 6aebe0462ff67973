// Models whose attention rotates queries and keys: the layers' pattern, what each kind of layer
// rotates by, its window, its logit scale and its cache. Encoders of the same build (ModernBERT)
// come here too.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/layers.h"
#include "src/model/rope.h"

namespace posenc::detail {
namespace {

class DecoderReader {
 public:
  DecoderReader(const Section& config, const Family& family)
      : config_(config), reading_(config.reading), family_(family) {}

  void read() {
    shape_ = read_shape(config_, family_, notes_);
    if (reading_.error) return;
    causal_ = family_.causal;
    const auto decoder = config_.flag("is_decoder");
    const auto both = config_.raw("use_bidirectional_attention");
    if (both && both->text() != "null" && both->text() != "false" && both->text() != "\"vision\"")
      causal_ = false;
    if (decoder && !family_.causal) causal_ = decoder->value;
    layers_ = read_layers(config_, family_, shape_, causal_, notes_);
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
    if (!family_.remark.empty()) reading_.warn("family_remark", family_.remark);
  }

 private:
  LayerGroup make_group(const LayerKind& kind, bool several) {
    LayerGroup group;
    group.stack = causal_ ? Stack::text : Stack::encoder;
    group.causal = causal_;
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      if (layers_.kinds[static_cast<std::size_t>(i)] == kind) group.layers.push_back(i);
    }
    group.provenance = notes_;
    if (several) group.label = label(kind);
    Shape shape = shape_;
    full_head_dim(kind, shape, group.provenance);
    group.geometry = shape.geometry();
    if (!has_attention(kind.type)) {
      group.label = label(kind);
      group.schemes = {NoPe{}};
      group.cache_note = "no attention: a state of fixed size, nothing for each token";
      return group;
    }
    if (has_window(kind.type)) {
      group.window = layers_.window;
      group.chunked = is_chunked(kind.type);
      if (!layers_.window_note.field.empty()) group.provenance.push_back(layers_.window_note);
    }
    add_rotation(kind, shape, group);
    set_logits(kind, shape, group);
    if (kind.type == cross_attention) {
      group.causal = false;
      group.cache_note = "keys and values are the picture's: nothing for each token";
      return group;
    }
    add_cache(kind, shape, group);
    return group;
  }

  static std::string label(const LayerKind& kind) {
    std::string text = kind.type;
    std::ranges::replace(text, '_', ' ');
    return kind.rotates || !has_attention(kind.type) ? text : text + " without position";
  }

  // Gemma 4: full layers have wider and fewer heads.
  void full_head_dim(const LayerKind& kind, Shape& shape, Notes& notes) {
    if (has_window(kind.type) || !lists(family_.types, "gemma4_text")) return;
    const Range range{.least = 1, .most = static_cast<double>(most_head_dim)};
    const auto wide = config_.integer("global_head_dim", range);
    shape.head_dim = shape.value_dim = wide ? wide->value : 512;
    note(notes, "head_dim", std::to_string(shape.head_dim), wide ? Origin::file : Origin::family,
         wide ? wide->key : "default of " + reading_.family);
    const auto same = config_.flag("attention_k_eq_v");
    const auto few = config_.integer("num_global_key_value_heads", range);
    if (few && same && same->value) {
      shape.kv_heads = few->value;
      note(notes, "kv_heads", std::to_string(few->value), Origin::file, few->key);
      if (shape.heads % shape.kv_heads != 0) {
        reading_.refuse(few->key, "must divide the query heads", std::to_string(few->value),
                        "correct it");
      }
    }
  }

  void add_rotation(const LayerKind& kind, const Shape& shape, LayerGroup& group) {
    if (!kind.rotates) {
      group.schemes = {NoPe{}};
      return;
    }
    RopeAsk ask{.layer_type = kind.type,
                .local = has_window(kind.type),
                .head_dim = shape.head_dim,
                .rotary_dim = {},
                .context = shape.context};
    if (family_.latent.nope > 0) {
      Notes unused;
      ask.rotary_dim =
          config_.size(unused, "", "qk_rope_head_dim", family_.latent.rope, most_head_dim);
      note(group.provenance, "rotary_dim", std::to_string(*ask.rotary_dim), Origin::derived,
           "qk_rope_head_dim");
    } else if (lists(family_.types, "chatglm")) {
      ask.rotary_dim = shape.head_dim / 2;
      note(group.provenance, "rotary_dim", std::to_string(*ask.rotary_dim), Origin::family,
           "half of kv_channels");
    } else if (lists("gptj codegen", family_.types) && !config_.raw("rotary_dim")) {
      ask.rotary_dim = std::min<std::int64_t>(64, shape.head_dim);  // null is the whole head
      note(group.provenance, "rotary_dim", std::to_string(*ask.rotary_dim), Origin::family,
           "default of " + reading_.family);
    }
    RopeFound found = read_rope(config_, family_, ask, group.provenance);
    if (!found.rope) {
      group.schemes = {NoPe{}};
      return;
    }
    if (family_.latent.nope > 0) {
      found.rope->slice = Slice::trailing;
      note(group.provenance, "slice", "trailing", Origin::family,
           "a head is [no position, rotated]");
    }
    interleave_switch(*found.rope, group.provenance);
    original_ = std::max(original_, found.original);
    // Llama-3's factor divides the slow pairs and does not mean a ratio of lengths.
    if (!number_of(found.rope->scaling, "low_freq_factor")) {
      extended_ = std::max(extended_, number_of(found.rope->scaling, "factor").value_or(0) *
                                          static_cast<double>(found.original));
    }
    if (found.beta > 0) {
      group.logits.beta = found.beta;
      const std::int64_t trained = found.original > 0 ? found.original : shape.context;
      group.logits.floor = found.beta_floor > 0 ? found.beta_floor : static_cast<double>(trained);
      group.logits_note = "llama_4_scaling_beta " + number_text(found.beta);
    }
    group.schemes = {std::move(*found.rope)};
  }

  // DeepSeek-V3 and Nomic BERT have a switch between the two pairings.
  void interleave_switch(Rope& rope, Notes& notes) {
    const bool deepseek = family_.latent.nope > 0 && family_.pairing == Pairing::interleaved;
    if (!deepseek && !lists(family_.types, "nomic_bert")) return;
    const auto interleave = config_.flag("rope_interleave rotary_emb_interleaved");
    if (!interleave) return;
    rope.pairing = interleave->value ? Pairing::interleaved : Pairing::halves;
    note(notes, "pairing", name(rope.pairing), Origin::file, interleave->key);
  }

  void set_logits(const LayerKind& kind, const Shape& shape, LayerGroup& group) {
    const double root = std::sqrt(static_cast<double>(shape.head_dim));
    switch (family_.scale) {
      case LogitScale::usual: break;
      case LogitScale::one:
        group.logits.multiplier = root;
        group.logits_note = "q·k is not divided by √head_dim";
        break;
      case LogitScale::query_pre_attn: {
        const auto scalar = config_.number("query_pre_attn_scalar", positive);
        const double value = scalar ? scalar->value : 256;
        group.logits.multiplier = std::sqrt(static_cast<double>(shape.head_dim) / value);
        group.logits_note = "query_pre_attn_scalar " + number_text(value);
        note(group.provenance, "query_pre_attn_scalar", number_text(value),
             scalar ? Origin::file : Origin::family,
             scalar ? scalar->key : "default of " + reading_.family);
        break;
      }
      case LogitScale::attention_multiplier: {
        const auto factor = config_.number("attention_multiplier", positive);
        const double value = factor ? factor->value : 1;
        group.logits.multiplier = value * root;
        group.logits_note = "attention_multiplier " + number_text(value);
        note(group.provenance, "attention_multiplier", number_text(value),
             factor ? Origin::file : Origin::family,
             factor ? factor->key : "default of " + reading_.family);
        break;
      }
    }
    if (family_.other == "chunked_attention" && !kind.rotates) llama4_temperature(group);
    if (const auto keys = config_.number("key_multiplier", positive);
        keys && lists(family_.types, "falcon_h1")) {
      group.logits.multiplier *= keys->value;
      group.logits_note = "key_multiplier " + number_text(keys->value);
      note(group.provenance, "key_multiplier", number_text(keys->value), Origin::file, keys->key);
    }
  }

  // Llama 4's layers without position: q × (1 + attn_scale·ln(1 + ⌊(p + 1)/floor_scale⌋)).
  void llama4_temperature(LayerGroup& group) {
    const Json* tuning = config_.raw("attn_temperature_tuning");
    const bool counts = tuning && tuning->get<std::int64_t>();  // the first files say 4 for true
    if (counts) {
      if (tuning->text() == "0") return;
      note(group.provenance, "attn_temperature_tuning", tuning->text(), Origin::file,
           config_.where("attn_temperature_tuning"));
    } else if (!config_.flag_or(group.provenance, "attn_temperature_tuning",
                                "attn_temperature_tuning", true)) {
      return;
    }
    const auto scale = config_.number("attn_scale", not_negative),
               floor = config_.number("floor_scale", at_least_one);
    group.logits.beta = scale ? scale->value : 0.1;
    group.logits.floor = floor ? floor->value : 8192;
    group.logits.offset = 1;
    group.logits_note = "attn_temperature_tuning";
  }

  void add_cache(const LayerKind& kind, const Shape& shape, LayerGroup& group) {
    set_cache(group, shape);
    if (!group.causal) return;
    if (family_.latent.nope > 0) {
      Notes unused;
      const std::int64_t rank =
          config_.size(unused, "", "kv_lora_rank", family_.latent.rank, most_width);
      const std::int64_t turned =
          config_.size(unused, "", "qk_rope_head_dim", family_.latent.rope, most_head_dim);
      group.cache_elements = rank + turned;
      group.cache_note =
          "compressed: " + std::to_string(rank) + " + " + std::to_string(turned) + " (MLA)";
    }
    if (kind.shares) {
      group.cache_elements = 0;
      group.cache_note = "an earlier layer's keys and values are used again";
      return;
    }
    if (group.window && (shape.context == 0 || *group.window < shape.context)) {
      const std::string tokens = std::to_string(*group.window) + " tokens";
      group.cache_note += group.chunked ? "; only the chunk being read is needed, up to " + tokens
                                        : "; only the last " + tokens + " are needed";
    }
  }

  void set_context() {
    Model& model = reading_.model;
    if (model.context > 0) return;
    // What the file says holds, even where its scaling reaches further: a lint tells of the
    // difference.
    const double reached = std::min(std::round(extended_), static_cast<double>(most_length));
    model.context = shape_.context > 0 ? shape_.context : static_cast<std::int64_t>(reached);
    model.trained_context = original_ > 0 ? original_ : model.context;
  }

  const Section& config_;
  Reading& reading_;
  const Family& family_;
  Notes notes_;  // of every group
  Shape shape_;
  bool causal_ = true;
  Layers layers_;
  std::int64_t original_ = 0;  // trained length, as the scalings say
  double extended_ = 0;        // factor times that
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
  if (theta) filled.theta = theta->value;
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
