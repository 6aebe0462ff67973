// A GGUF's metadata, said in Hugging Face's words and read by the readers of config.json. Messages
// and provenance name the GGUF's own keys. What llama.cpp takes where a key is missing:
//   rope.freq_base 10000 · rope.dimension_count the whole head · key_length embedding / heads
//   rope.scaling.type linear · rope.scaling.factor none · original_context_length the context
#include "src/model/gguf.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/core/try.h"
#include "src/model/families/logit_rules.h"
#include "src/model/gguf_values.h"
#include "src/model/rope_divisors.h"

namespace posenc::detail {
namespace {

constexpr GgufKey keys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "v_head_dim"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"attention.shared_kv_layers", "num_kv_shared_layers"},
    {"attention.relative_buckets_count", "relative_attention_num_buckets"},
    {"decoder_block_count", "num_decoder_layers"},
    {"full_attention_interval", "full_attention_interval"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"rope.dimension_count", "rotary_dim"},
};
constexpr GgufKey yarn_keys[] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                 {"rope.scaling.yarn_beta_slow", "beta_slow"}};

class GgufReader : GgufTranslation {
 public:
  using GgufTranslation::GgufTranslation;

  void read() {
    if (!find_architecture_row()) return;
    translate();
    if (reading_.error) return;
    const Json whole{std::move(config_)};
    const Section config(reading_, &whole);
    const Family family = family_of();
    if (reading_.error) return;
    family.read(config, family);
    if (reading_.error) return;
    if (!row_) mark_assumed(reading_.model);
    finish();
  }

 private:
  // --- the translation ---------------------------------------------------------------------------

  bool find_architecture_row() {
    spell("model_type", "general.architecture");
    const GgufValue* value = gguf_.find("general.architecture");
    const auto* name = value ? std::get_if<std::string>(value) : nullptr;
    if (const GgufValue* type = gguf_.find("general.type")) {
      const auto* word = std::get_if<std::string>(type);
      if (word && *word != "model") {
        reading_.refuse("general.type", "must be model", "'" + word->substr(0, 60) + "'",
                        "give the GGUF of the model itself");
        return false;
      }
    }
    if (!name || name->empty() || name->size() > 100 || printable(*name, 100) != *name) {
      const GgufValue* split = gguf_.find("split.no");
      reading_.refuse("general.architecture", name ? "must be a short word" : "is missing", "",
                      split ? "this is a later part of a split model: give its first part"
                            : "give the GGUF of a model");
      return false;
    }
    arch_ = *name;
    reading_.family = arch_ + " in llama.cpp";
    reading_.model.family = arch_;
    row_ = find_architecture(arch_);
    if (!row_) return true;
    base_ = find_family(row_->family);
    if (row_->refused.empty()) return true;
    reading_.refuse("general.architecture", row_->refused, "'" + arch_ + "'",
                    "give the GGUF of the text model");
    return false;
  }

  bool latent() const { return base_ && base_->mla.nope > 0; }

  void translate() {
    for (const GgufKey& key : keys) carry(key);
    if (row_)
      for (const GgufKey& key : row_->keys) carry(key);
    translate_layers();
    translate_heads();
    translate_layer_types();
    if (latent()) translate_latent();
    translate_rope();
    translate_rest();
    if (!scaling_.empty()) put("rope_scaling", {std::move(scaling_)}, path("rope.scaling"));
  }

  // Layers that predict further tokens come last in block_count and are no part of the stack.
  void translate_layers() {
    const auto blocks = whole("block_count");
    const auto extra = whole("nextn_predict_layers");
    spell("num_hidden_layers", path("block_count"));
    if (!blocks) return;
    layers_ = *blocks;
    if (extra && *extra > 0 && *extra < layers_) {
      layers_ -= *extra;
      reading_.spelled.back().second += " − " + path("nextn_predict_layers");
    }
    config_.push_back({"num_hidden_layers", {layers_}});
  }

  // A number, or one for each layer: 0 where a layer has no attention.
  void translate_heads() {
    one_count("attention.head_count", "num_attention_heads");
    // The compressed cache counts as one head, and is not what a layer has.
    if (!latent()) one_count("attention.head_count_kv", "num_key_value_heads");
  }

  // Two lists say what a layer is: without key-value heads it has no attention, whatever the
  // pattern of windows says of it, else the pattern decides. A pattern may be a period instead.
  void translate_layer_types() {
    constexpr std::string_view pattern = "attention.sliding_window_pattern",
                               counts = "attention.head_count_kv";
    const auto* slides = get<std::vector<std::int64_t>>(pattern);
    const auto* heads = latent() ? nullptr : get<std::vector<std::int64_t>>(counts);
    if (heads && std::ranges::find(*heads, 0) == heads->end()) heads = nullptr;
    if (!slides && find(pattern)) {
      put("sliding_window_pattern", json(*find(pattern)), path(pattern));
    }
    if (layers_ == 0 || (!slides && !heads)) return;
    if (!covers_layers(pattern, slides) || !covers_layers(counts, heads)) return;
    const std::string_view none =
        base_ && !base_->other.contains("sliding") ? base_->other : "mamba";
    Json::Array types;
    for (std::size_t i = 0; std::ssize(types) < layers_; ++i) {
      const bool attends = !heads || (*heads)[i] != 0, window = slides && (*slides)[i] != 0;
      types.push_back({std::string(!attends ? none
                                   : window ? "sliding_attention"
                                            : "full_attention")});
    }
    put("layer_types", {std::move(types)}, path(slides ? pattern : counts));
  }

  bool covers_layers(std::string_view key, const std::vector<std::int64_t>* each) {
    if (!each || std::ssize(*each) >= layers_) return true;
    reading_.refuse(path(key),
                    "must have an entry for each of " + std::to_string(layers_) + " layers",
                    std::to_string(each->size()), "the file is damaged");
    return false;
  }

  void one_count(std::string_view key, std::string_view name) {
    spell(name, path(key));
    const GgufValue* value = find(key);
    if (!value) return;
    const auto* each = std::get_if<std::vector<std::int64_t>>(value);
    if (!each) {
      config_.push_back({std::string(name), json(*value)});
      return;
    }
    std::int64_t common = 0;
    for (const std::int64_t count : *each) {
      if (count != 0 && common != 0 && count != common) {
        reading_.refuse(path(key), "must be one number: layers with unlike heads are not covered",
                        std::to_string(common) + " and " + std::to_string(count));
        return;
      }
      if (count != 0) common = count;
    }
    config_.push_back({std::string(name), {common}});
  }

  // DeepSeek's heads: [no position, rotated]. The converter writes the width of the compressed
  // cache as key_length since it writes key_length_mla.
  void translate_latent() {
    const auto own = whole("attention.key_length_mla");
    const auto key = own ? own : whole("attention.key_length");
    const auto rotated = whole("rope.dimension_count");
    if (!key || !rotated || *rotated >= *key) {
      reading_.refuse(path(key ? "rope.dimension_count" : "attention.key_length_mla"),
                      key && rotated ? "must be below the head's width" : "is missing", "",
                      "the file is damaged");
      return;
    }
    drop("rotary_dim head_dim v_head_dim");
    put("qk_rope_head_dim", {*rotated}, path("rope.dimension_count"));
    put("qk_nope_head_dim", {*key - *rotated},
        path(own ? "attention.key_length_mla" : "attention.key_length") + " − " +
            path("rope.dimension_count"));
    const std::string_view value_key = find("attention.value_length_mla")
                                           ? "attention.value_length_mla"
                                           : "attention.value_length";
    if (const auto value = whole(value_key)) put("v_head_dim", {*value}, path(value_key));
  }

  // --- rotation ----------------------------------------------------------------------------------

  void translate_rope() {
    if (row_ && row_->rotation == Rotation::none) return;
    spell("rope_scaling", path("rope.scaling"));
    const StoredTensor* long_factors = tensor("rope_factors_long.weight");
    const StoredTensor* short_factors = tensor("rope_factors_short.weight");
    std::string type = "linear";  // llama.cpp's default; without a factor it does nothing
    if (const auto* said = get<std::string>("rope.scaling.type")) type = *said;
    const std::string_view factor_key =
        find("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    const auto factor = number(factor_key);
    if (long_factors && short_factors) {
      translate_longrope(*short_factors, *long_factors);
    } else if (type == "yarn") {
      translate_yarn(factor);
    } else if (type == "linear" && factor.value_or(0) != 0 && *factor != 1) {
      put_scaling("rope_type", {std::string("linear")},
                  path(find("rope.scaling.type") ? "rope.scaling.type" : factor_key));
      put_scaling("factor", {*factor}, path(factor_key));
    } else if (type == "longrope") {
      reading_.refuse(path("rope.scaling.type"),
                      "is longrope, and the tensors with its factors are missing", "",
                      "give the whole model: rope_factors_long and rope_factors_short");
    } else if (type != "linear" && type != "none") {
      reading_.refuse(path("rope.scaling.type"), "must be none, linear, yarn or longrope",
                      "'" + type.substr(0, 60) + "'");
    }
    if (row_ && row_->rotation == Rotation::mrope) translate_sections(true);
    if (row_ && row_->may_have_sections) translate_sections(false);
  }

  void translate_sections(bool required) {
    const auto* said = get<std::vector<std::int64_t>>("rope.dimension_sections");
    if (!said) {
      if (required)
        reading_.refuse(path("rope.dimension_sections"), "is missing", "",
                        "the pairs for time, height and width");
      return;
    }
    std::vector<std::int64_t> pairs = *said;
    while (!pairs.empty() && pairs.back() == 0) pairs.pop_back();  // the fourth axis has none
    if (pairs.empty() && !required) return;
    Json::Array list;
    for (const std::int64_t count : pairs) list.push_back({count});
    put_scaling("mrope_section", {std::move(list)}, path("rope.dimension_sections"));
  }

  void translate_yarn(std::optional<double> factor) {
    if (!factor || *factor == 0) {
      reading_.refuse(path("rope.scaling.factor"), "is missing: yarn scaling needs it");
      return;
    }
    const auto mix = number("rope.scaling.yarn_ext_factor");
    if (mix && *mix >= 0 && *mix != 1) {
      reading_.refuse(path("rope.scaling.yarn_ext_factor"),
                      "must be 1: a part of YaRN is not covered", number_text(*mix));
      return;
    }
    put_scaling("rope_type", {std::string("yarn")}, path("rope.scaling.type"));
    put_scaling("factor", {*factor}, path("rope.scaling.factor"));
    put_original();
    for (const GgufKey& key : yarn_keys) {
      const auto value = number(key.gguf);
      if (!value || *value <= 0) continue;
      if (row_ && row_->reads_betas) {
        put_scaling(key.name, {*value}, path(key.gguf));
      } else if (*value != key_default(key.name)) {
        not_read(key.gguf);
      }
    }
    // Whatever it says, llama.cpp computes it again wherever it mixes frequencies.
    if (const auto value = number("rope.scaling.yarn_attn_factor"); value && *value != 1)
      not_read("rope.scaling.yarn_attn_factor");
    const auto attention = number("rope.scaling.attn_factor");
    if (attention && *attention != 1) {  // beside YaRN's own
      const double own = *factor > 1 ? 0.1 * std::log(*factor) + 1 : 1;
      put_scaling("attention_factor", {*attention * own},
                  path("rope.scaling.attn_factor") + " × (0.1 ln s + 1)");
    }
    if (const auto log = number("rope.scaling.yarn_log_multiplier"); log && *log != 0) {
      // DeepSeek's file holds a tenth of mscale_all_dim; its mscale is lost, and taken to be the
      // same.
      const double all = latent() ? *log * 10 : *log;
      put_scaling("mscale", {latent() ? all : 1.0}, path("rope.scaling.yarn_log_multiplier"));
      put_scaling("mscale_all_dim", {all}, path("rope.scaling.yarn_log_multiplier"));
    }
    if (const auto beta = number("attention.temperature_scale"); beta && *beta > 0)
      put_scaling("llama_4_scaling_beta", {*beta}, path("attention.temperature_scale"));
  }

  static double key_default(std::string_view name) { return name == "beta_fast" ? 32 : 1; }

  void not_read(std::string_view key) {
    reading_.warn("gguf_key_not_read", path(key) + " is not read by llama.cpp for " + arch_ +
                                           ", which keeps its default");
  }

  void put_original() {
    const auto said = whole("rope.scaling.original_context_length");
    const auto original = said ? said : whole("context_length");
    if (original)
      put_scaling("original_max_position_embeddings", {*original},
                  path(said ? "rope.scaling.original_context_length" : "context_length"));
  }

  void translate_longrope(const StoredTensor& shorter, const StoredTensor& longer) {
    put_scaling("rope_type", {std::string("longrope")}, "rope_factors_long.weight");
    put_list("short_factor", shorter);
    put_list("long_factor", longer);
    put_original();
    // The file's amplitude; where it is what the rule gives, the rule is the better explanation.
    const double said = number("rope.scaling.attn_factor").value_or(1);
    const auto context = whole("context_length"),
               original = whole("rope.scaling.original_context_length");
    double rule = 1;
    if (context && original && *original > 1 && *context > *original) {
      const auto m = static_cast<double>(*context), l = static_cast<double>(*original);
      rule = std::sqrt(1 + std::log(m / l) / std::log(l));
    }
    if (std::abs(said - rule) > 1e-6 * rule)
      put_scaling("attention_factor", {said}, path("rope.scaling.attn_factor"));
  }

  void put_list(std::string_view name, const StoredTensor& from) {
    Json::Array list;
    for (const double factor : values(from)) list.push_back({meant(factor)});
    put_scaling(name, {std::move(list)}, from.name);
  }

  // --- the rest ----------------------------------------------------------------------------------

  void translate_rest() {
    const bool* said = get<bool>("attention.causal");
    const bool causal = said ? *said : !row_ || row_->causal;
    const std::string why = said ? path("attention.causal") : rule();
    put("is_decoder", {causal}, why);
    if (!causal) put("use_bidirectional_attention", {true}, why);
    if (row_ && row_->rule) row_->rule(*this);
  }

  // The family's row as llama.cpp has it: its own pairing and defaults, and no class defaults.
  Family family_of() {
    Family family = base_ ? *base_ : unknown_family();
    if (!row_) {
      reading_.model.known_family = false;
      if (!find("rope.freq_base") && !find("rope.dimension_count")) {
        reading_.refuse("general.architecture",
                        "is not a known architecture, and no key says how it encodes position",
                        "'" + arch_ + "'", "give its config.json");
      }
      if (find("attention.kv_lora_rank")) {
        reading_.refuse("general.architecture",
                        "is not a known architecture, and its latent attention has no generic rule",
                        "'" + arch_ + "'", "give its config.json");
      }
      reading_.warn("unknown_family",
                    "'" + arch_ +
                        "' is not a known architecture: read by a generic rule, which assumes that "
                        "every layer rotates, pairing (r, r + d/2), with logits × 1/√head_dim, a "
                        "causal mask and no window; a GGUF does not say its pairing");
    }
    const bool slides = family.pattern.mark && family.other == "sliding_attention";
    family.pairing =
        row_ && row_->rotation == Rotation::normal ? Pairing::interleaved : Pairing::halves;
    family.theta = 10000;
    family.theta_before_5 = 0;
    family.theta_keys = "rope_theta";
    family.local_theta_keys = "rope_local_base_freq";
    if (family.local == LocalRope::unscaled) family.local_theta = 0;
    if (row_ && row_->local_theta > 0) {
      family.local = LocalRope::own_theta;
      family.local_theta = row_->local_theta;
    }
    family.parameters = {};
    family.original = 0;
    family.partial_keys = {};
    family.reads_rotary_dim = true;
    family.reads_bidirectional = true;
    family.layer_types = true;
    family.every_keys = "sliding_window_pattern full_attention_interval";
    family.window_keys = "sliding_window";
    family.context = 0;
    family.sizes = {};
    family.partial = 1;
    family.window = row_ ? row_->window : 0;
    family.sections = {};
    family.row_offset = 0;  // the converter cuts the rows before the first position
    family.rows_beyond = false;
    if (family.logits == attention_multiplier) family.logits = nullptr;  // attention.scale says it
    if (row_ && !row_->remark.empty()) family.remark = row_->remark;
    const auto window = whole("attention.sliding_window");
    if (slides && !window && row_ && row_->may_slide) family.pattern = {}, family.window = 0;
    return family;
  }

  // What no key of a config.json says.
  void finish() {
    Model& model = reading_.model;
    if (const StoredTensor* divisors = tensor("rope_freqs.weight")) divide(values(*divisors));
    const auto scale = number("attention.scale");
    for (LayerGroup& group : model.groups) {
      if (!scale || *scale <= 0 || group.geometry.head_dim == 0) continue;
      group.logits.multiplier = *scale * std::sqrt(static_cast<double>(group.geometry.head_dim));
      group.logits_note = "attention.scale " + number_text(*scale);
      note(group.provenance, "attention.scale", number_text(*scale), Origin::file,
           path("attention.scale"));
    }
    if (row_ && row_->only_encoder)
      std::erase_if(model.groups, [](const LayerGroup& g) { return g.stack == Stack::decoder; });
    for (LayerGroup& group : model.groups) {  // what the translation added, no key says
      for (Provenance& value : group.provenance) {
        if (value.detail.starts_with("rule of ")) value.origin = Origin::family;
      }
    }
    check_rows();
    if (gguf_.missing_bytes > 0) {
      reading_.warn("file_cut_off", reading_.file + " lacks the last " +
                                        std::to_string(gguf_.missing_bytes) +
                                        " bytes of its tensors: the header is whole and is "
                                        "explained; download the rest before the model is run");
    }
  }

  // Llama 3's scaling, Gemma 4's still pairs: a divisor for each pair of the layers that are
  // scaled.
  void divide(const std::vector<double>& divisors) {
    if (reading_.error) return;
    const auto [least, most] = std::ranges::minmax(divisors);
    for (LayerGroup& group : reading_.model.groups) {
      if (row_ && row_->local_theta > 0 && group.window) continue;  // full layers alone have them
      for (Scheme& scheme : group.schemes) {
        Rope* rope = std::get_if<Rope>(&scheme);
        if (!rope) continue;
        const auto llama3 = std::holds_alternative<Unscaled>(rope->scaling)
                                ? llama3_of(*rope, group.geometry, divisors)
                                : std::nullopt;
        for (Provenance& value : group.provenance) {
          if (value.field != "rope_type" || value.origin != Origin::derived) continue;
          value.value = llama3 ? "llama3" : value.value;
          value.detail = llama3
                             ? "the divisors of rope_freqs.weight are those of " + call_of(*llama3)
                             : "no scaling by name; the tensor rope_freqs.weight divides each pair";
        }
        if (llama3) {
          rope->scaling = *llama3;
          reading_.model.trained_context = llama3->original_max_position_embeddings;
        } else {
          rope->frequency_factors = divisors;
        }
        note(group.provenance, "frequency_factors",
             std::to_string(divisors.size()) + " divisors, " + number_text(least) + " to " +
                 number_text(most),
             Origin::file, "rope_freqs.weight");
      }
    }
  }

  // A learned table has the rows that it has.
  void check_rows() {
    const StoredTensor* table = tensor("position_embd.weight");
    if (!table || table->shape.size() != 2) return;
    for (LayerGroup& group : reading_.model.groups) {
      for (Scheme& scheme : group.schemes) {
        Learned* learned = std::get_if<Learned>(&scheme);
        if (!learned || learned->rows == table->shape[0]) continue;
        reading_.warn("rows_vs_context", "position_embd.weight has " +
                                             std::to_string(table->shape[0]) + " rows and " +
                                             path("context_length") + " is " +
                                             std::to_string(learned->rows) + "; the rows count");
        learned->rows = table->shape[0];
      }
    }
  }

  const Architecture* row_ = nullptr;  // null: not a known architecture
  const Family* base_ = nullptr;       // whose layers it builds; null: the generic rotary one's
};

}  // namespace
}  // namespace posenc::detail

namespace posenc {

Expected<Model> read_gguf(std::span<const std::byte> bytes, std::string_view name) {
  using namespace detail;
  POSENC_TRY(gguf, parse_gguf(bytes, name));
  Reading reading;
  reading.file = name;
  reading.model.name = stem(name, ".gguf");
  reading.model.files = {{std::string(name), FileFormat::gguf, FileRole::model}};
  GgufReader(reading, gguf).read();
  compile_all(reading);
  if (reading.error) return std::unexpected(*reading.error);
  return std::move(reading.model);
}

}  // namespace posenc
