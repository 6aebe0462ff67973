// A GGUF's metadata, said in Hugging Face's words and read by the readers of config.json. Messages
// and provenance name the GGUF's own keys.
#include "src/model/gguf.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/core/try.h"
#include "src/model/checkpoint.h"
#include "src/model/compare.h"
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
    {"attention.indexer.top_k", "index_topk"},
    {"attention.indexer.key_length", "index_head_dim"},
    {"attention.indexer.head_count", "index_n_heads"},
    {"attention.relative_buckets_count", "relative_attention_num_buckets"},
    {"decoder_block_count", "num_decoder_layers"},
    {"full_attention_interval", "full_attention_interval"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"rope.dimension_count", "rotary_dim"},
    {"rope.dimension_count_swa", "local_rotary_dim"},
};

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
    if (!row_) {
      reading_.warn("unknown_family",
                    "'" + arch_ + "' is not a known architecture: read by a generic rule, which " +
                        generic_rule(reading_.model) + "; a GGUF does not say its pairing");
      mark_assumed(reading_.model);
    }
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
    const bool covered = row_->not_covered.empty();
    if (covered && row_->refused.empty()) return true;
    reading_.refuse("general.architecture", covered ? row_->refused : "is known and not covered",
                    "'" + arch_ + "'",
                    covered ? "give the GGUF of a text model" : row_->not_covered);
    return false;
  }

  void translate() {
    for (const GgufKey& key : keys) carry(key);
    if (row_)
      for (const GgufKey& key : row_->keys) carry(key);
    if (row_ && row_->window_fixed) drop("sliding_window");
    translate_layers(*this);
    translate_rope(*this);
    translate_rest();
    if (!scaling_.empty()) put("rope_scaling", {std::move(scaling_)}, path("rope.scaling"));
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
    }
    family.rope.pairing = row_ && row_->rotation == Rotation::normal && !has_sections(*this)
                              ? Pairing::interleaved
                              : Pairing::halves;
    family.rope.theta = 10000;
    family.rope.theta_before = 0;
    family.rope.theta_keys = "rope_theta";
    family.rope.parameters = {};
    family.rope.original = 0;
    family.slice.partial_keys = {};
    family.slice.reads_rotary_dim = true;
    family.reads_bidirectional = true;
    family.layers.types = true;
    family.heads.of_layers = "heads_of_layers";
    family.heads.kv_of_layers = "kv_heads_of_layers";
    family.layers.every_keys = "sliding_window_pattern full_attention_interval";
    family.window.keys = "sliding_window";
    family.context = 0;
    family.sizes = {};
    if (family.attention.indexer.most > 0)
      family.attention.indexer.most = family.attention.indexer.width =
          family.attention.indexer.heads = no_default;
    family.slice.partial = 1;
    family.axes.sections = {};
    family.added.row_offset = 0;  // the converter cuts the rows before the first position
    family.added.rows_beyond = false;
    family.heads.shared_kv = 0;
    if (family.attention.logits == attention_multiplier)
      family.attention.logits = nullptr;  // attention.scale says it
    if (row_) apply_row(family);
    return family;
  }

  // What llama.cpp does otherwise than the family in Hugging Face's code.
  void apply_row(Family& family) {
    if (row_->rotates) family.layers.rotates = row_->rotates;
    if (row_->logits) family.attention.logits = row_->logits;
    if (row_->sinks != Sinks::none) family.attention.sinks = row_->sinks;
    if (!row_->remark.empty()) family.remark = row_->remark;
    family.layers.forced = nullptr;
    family.layers.pattern =
        slides() || row_->slides == Slides::never ? row_->pattern : LayerPattern{};
    family.layers.every = row_->every;
    family.window.size = slides() ? row_->window : 0;
    family.window.needs_switch = false;
    family.window.half = false;
    family.window.grows = false;
    // Without a base of their own, layers that slide have that of all.
    family.local.rope = row_->local;
    family.local.theta = row_->local_theta;
    family.local.theta_keys = {};
    if (row_->local == LocalRope::own_theta || row_->local == LocalRope::own_theta_scaled) {
      const bool scaled = row_->local == LocalRope::own_theta_scaled;
      const bool own = row_->local_theta > 0 || find("rope.freq_base_swa");
      if (own) family.local.theta_keys = "rope_local_base_freq";
      if (!own) family.local.rope = scaled ? LocalRope::same : LocalRope::unscaled;
    }
    family.local.rotary_dim = "local_rotary_dim";
  }

  // llama.cpp rotates whole heads where no key says how much of one: a family that rotates a part
  // has lost it.
  void warn_of_whole_heads() {
    const bool is_part = (base_ && base_->slice.partial > 0 && base_->slice.partial < 1) ||
                         (row_ && contains_word(row_->rotates_part, arch_));
    const bool rotates = std::ranges::any_of(
        reading_.model.groups, [](const LayerGroup& group) { return rope_of(group) != nullptr; });
    if (!is_part || !rotates || find("rope.dimension_count") || latent()) return;
    reading_.warn("gguf_rotary_dim_defaulted",
                  path("rope.dimension_count") +
                      " is missing, so that llama.cpp rotates whole heads, where models of this "
                      "kind rotate a part of each, as their config.json says");
  }

  // What no key of a config.json says.
  void finish() {
    Model& model = reading_.model;
    if (const StoredTensor* divisors = tensor("rope_freqs.weight")) divide(values(*divisors));
    warn_of_unread_keys(*this);
    warn_of_whole_heads();
    warn_of_ranges(*this);
    find_sinks();
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
    check_mask();
    if (gguf_.missing_bytes > 0) {
      reading_.warn("file_cut_off", reading_.file + " lacks the last " +
                                        std::to_string(gguf_.missing_bytes) +
                                        " bytes of its tensors: the header is whole and is "
                                        "explained; download the rest before the model is run");
    }
  }

  // Llama 3's scaling, Gemma 4's still pairs: a divisor for each pair of the layers that are
  // scaled.
  void divide(const std::vector<double>& all) {
    if (reading_.error) return;
    const bool full_alone = row_ && row_->local == LocalRope::own_theta;
    for (LayerGroup& group : reading_.model.groups) {
      if (full_alone && group.window) continue;
      for (Scheme& scheme : group.schemes) {
        Rope* rope = std::get_if<Rope>(&scheme);
        if (!rope) continue;
        // A tensor made for the widest layers is read as far as others rotate.
        std::vector<double> divisors = all;
        const auto pairs =
            static_cast<std::size_t>(rope->rotary_dim.value_or(group.geometry.head_dim) / 2);
        if (full_alone && pairs < divisors.size()) divisors.resize(pairs);
        const auto [least, most] = std::ranges::minmax(divisors);
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

  void find_sinks() {
    if (!row_ || !row_->sinks_if_stored) return;
    for (LayerGroup& group : reading_.model.groups) {
      const std::string name = "blk." + std::to_string(group.layers.at(0)) + ".attn_sinks.weight";
      group.sink_logits = tensor(name) != nullptr;
    }
  }

  // Readers of biases know no layers that see both ways.
  void check_mask() {
    const bool* causal = get<bool>("attention.causal");
    if (!causal || *causal) return;
    for (const LayerGroup& group : reading_.model.groups) {
      if (group.causal)
        reading_.refuse(path("attention.causal"), "must be true: both ways are not covered here",
                        "false");
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
};

}  // namespace
}  // namespace posenc::detail

namespace posenc {

Expected<Model> read_gguf(std::span<const std::byte> bytes, std::string_view name) {
  using namespace detail;
  POSENC_TRY(gguf, parse_gguf(bytes, name));
  // Pictures' and videos' have the names of tensors that their authors gave, and no sizes.
  const auto is_size = [](const auto& value) { return value.first.ends_with(".block_count"); };
  if (std::ranges::none_of(gguf.metadata, is_size))
    if (auto model = read_checkpoint(gguf.tensors, name, FileFormat::gguf))
      return *std::move(model);
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
