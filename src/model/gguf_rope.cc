// A GGUF's rotation in Hugging Face's words: scaling, position axes and the temperature of logits.
// What llama.cpp takes where a key is missing:
//   rope.freq_base 10000 · rope.dimension_count the whole head
//   rope.scaling.type linear · rope.scaling.factor none · original_context_length the context
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

constexpr std::string_view original_key = "rope.scaling.original_context_length",
                           amplitude_key = "rope.scaling.attn_factor",
                           log_key = "rope.scaling.yarn_log_multiplier";
constexpr GgufKey yarn_keys[] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                 {"rope.scaling.yarn_beta_slow", "beta_slow"}};

class RopeTranslation {
 public:
  explicit RopeTranslation(GgufTranslation& gguf) : gguf_(gguf), row_(gguf.row()) {}

  void translate() {
    gguf_.spell("rope_scaling", gguf_.path("rope.scaling"));
    const StoredTensor* long_factors = gguf_.tensor("rope_factors_long.weight");
    const StoredTensor* short_factors = gguf_.tensor("rope_factors_short.weight");
    std::string type = "linear";  // llama.cpp's default; without a factor it does nothing
    if (const auto* said = gguf_.get<std::string>("rope.scaling.type")) type = *said;
    if (long_factors && short_factors) {
      translate_longrope(*short_factors, *long_factors);
    } else if (type == "yarn") {
      translate_yarn();
    } else if (type == "linear" || type == "none") {
      translate_linear(type == "linear");
    } else if (type == "longrope") {
      refuse("rope.scaling.type", "is longrope, and the tensors with its factors are missing", "",
             "give the whole model: rope_factors_long and rope_factors_short");
    } else {
      refuse("rope.scaling.type", "must be none, linear, yarn or longrope",
             "'" + type.substr(0, 60) + "'");
    }
    translate_temperature();
    if (row_ && row_->rotation == Rotation::mrope) translate_sections(true);
    if (row_ && row_->may_have_sections) translate_sections(false);
  }

 private:
  void refuse(std::string_view key, std::string_view rule, std::string_view got = {},
              std::string_view cure = {}) {
    gguf_.reading().refuse(gguf_.path(key), rule, got, cure);
  }

  std::string_view factor_key() const {
    return gguf_.find("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  }

  void translate_linear(bool scaled) {
    const auto factor = gguf_.number(factor_key());
    const bool stretches = scaled && factor.value_or(0) != 0 && *factor != 1;
    warn_of_lost_factors();
    if (const auto amplitude = gguf_.number(amplitude_key); amplitude && *amplitude != 1) {
      if (!stretches) return put_amplitude(*amplitude);
      return refuse(amplitude_key, "must be 1: an amplitude beside a linear scale is not covered",
                    number_text(*amplitude));
    }
    if (!stretches) return;
    gguf_.put_scaling(
        "rope_type", {std::string("linear")},
        gguf_.path(gguf_.find("rope.scaling.type") ? "rope.scaling.type" : factor_key()));
    gguf_.put_scaling("factor", {*factor}, gguf_.path(factor_key()));
  }

  // YaRN by 1 turns by the plain angles, and has a factor on cos and sin.
  void put_amplitude(double amplitude) {
    gguf_.put_scaling("rope_type", {std::string("yarn")}, gguf_.path(amplitude_key));
    gguf_.put_scaling("factor", {1.0}, gguf_.path(amplitude_key));
    gguf_.put_scaling("attention_factor", {amplitude}, gguf_.path(amplitude_key));
    if (const auto context = gguf_.whole("context_length"))
      gguf_.put_scaling("original_max_position_embeddings", {*context},
                        gguf_.path("context_length"));
  }

  void warn_of_lost_factors() {
    const auto original = gguf_.whole(original_key), context = gguf_.whole("context_length");
    if (!row_ || !row_->stretched_by_lists || !original || !context || *original >= *context)
      return;
    gguf_.reading().warn(
        "gguf_missing_rope_factors",
        "LongRoPE was lost: rope_factors_long.weight and rope_factors_short.weight are not in the "
        "file, which promises " +
            std::to_string(*context) + " tokens of an original " + std::to_string(*original) +
            "; llama.cpp turns by unscaled angles, which this model was not trained with. "
            "convert_hf_to_gguf.py drops both of a model that transformers 5 saved "
            "(llama.cpp#24820), and files of before May 2024 have none; convert again, with "
            "rope_scaling at the top of config.json, or take another file");
  }

  // Llama.cpp asks for two axes before it deals pairs out to any. The fourth has often none.
  void translate_sections(bool required) {
    const auto* said = gguf_.get<std::vector<std::int64_t>>("rope.dimension_sections");
    if (!said) {
      if (required)
        refuse(
            "rope.dimension_sections", "is missing", "",
            "llama.cpp does not load it: convert the model anew, whose config.json has the pairs "
            "for time, height and width as mrope_section");
      return;
    }
    if (said->size() != sections_of_llama_cpp) warn_of_sections(*said);
    if (!required && !has_sections(gguf_)) return;
    std::vector<std::int64_t> pairs = *said;
    while (!pairs.empty() && pairs.back() == 0) pairs.pop_back();
    Json::Array list;
    for (const std::int64_t count : pairs) list.push_back({count});
    gguf_.put_scaling("mrope_section", {std::move(list)}, gguf_.path("rope.dimension_sections"));
  }

  // Its loader demands four, the last 0 where there is no fourth axis; Ollama's own converter
  // writes as many as config.json has.
  static constexpr std::size_t sections_of_llama_cpp = 4;
  void warn_of_sections(std::vector<std::int64_t> pairs) {
    const std::string count = std::to_string(pairs.size());
    const bool fewer = pairs.size() < sections_of_llama_cpp;
    pairs.resize(sections_of_llama_cpp);
    std::string list;
    for (const std::int64_t each : pairs) list += (list.empty() ? "" : ", ") + std::to_string(each);
    gguf_.reading().warn("sections_count",
                         gguf_.path("rope.dimension_sections") + " has " + count +
                             " numbers, and llama.cpp's loader demands 4 (\"wrong array length\")" +
                             (fewer ? ", while Ollama runs what its converter made so" : "") +
                             "; take a GGUF that llama.cpp's converter made" +
                             (fewer ? ", which has [" + list + "]" : ""));
  }

  void translate_yarn() {
    const auto factor = gguf_.number(factor_key());
    if (!factor || *factor == 0) {
      refuse("rope.scaling.factor", "is missing: yarn scaling needs it");
      return;
    }
    const auto mix = gguf_.number("rope.scaling.yarn_ext_factor");
    if (mix && *mix >= 0 && *mix != 1) {
      refuse("rope.scaling.yarn_ext_factor", "must be 1: a part of YaRN is not covered",
             number_text(*mix));
      return;
    }
    gguf_.put_scaling("rope_type", {std::string("yarn")}, gguf_.path("rope.scaling.type"));
    gguf_.put_scaling("factor", {*factor}, gguf_.path(factor_key()));
    put_original();
    for (const GgufKey& key : yarn_keys) {
      const auto value = gguf_.number(key.gguf);
      if (value && *value > 0) gguf_.put_scaling(key.name, {*value}, gguf_.path(key.gguf));
    }
    if (row_ && row_->beta_fast > 0 && !gguf_.number(yarn_keys[0].gguf))
      gguf_.put_scaling("beta_fast", {row_->beta_fast}, gguf_.rule());
    const auto attention = gguf_.number(amplitude_key);
    if (attention && *attention != 1) {  // beside YaRN's own
      const double own = *factor > 1 ? 0.1 * std::log(*factor) + 1 : 1;
      gguf_.put_scaling("attention_factor", {*attention * own},
                        gguf_.path(amplitude_key) + " × (0.1 ln s + 1)");
    }
    translate_mscales();
  }

  // Files of DeepSeek's layers hold a tenth of mscale_all_dim, others the whole of it; mscale is
  // lost, and the row says what llama.cpp takes it to be.
  void translate_mscales() {
    const auto log = gguf_.number(log_key);
    if (!log || *log == 0) return;
    const double all = gguf_.latent() ? *log * 10 : *log;
    const bool same = row_ && row_->equal_mscales;
    if (gguf_.latent() && row_ && !same && std::abs(all - 1) > 1e-6) {
      refuse(log_key, "must be 0.1: llama.cpp scales the logits twice by another",
             number_text(*log), "mscale and mscale_all_dim of 1 have 0.1");
    }
    gguf_.put_scaling("mscale", {gguf_.latent() ? all : 1.0}, gguf_.path(log_key));
    gguf_.put_scaling("mscale_all_dim", {all}, gguf_.path(log_key));
  }

  // A query's logits × (1 + β ln(⌊p / length⌋ + 1)).
  void translate_temperature() {
    const auto beta = gguf_.number("attention.temperature_scale");
    if (!beta || *beta == 0) return;
    gguf_.put_scaling("llama_4_scaling_beta", {*beta}, gguf_.path("attention.temperature_scale"));
    std::string_view key = "attention.temperature_length";
    if (row_ && !reads_key(*row_, key))
      key = gguf_.find(original_key) ? original_key : "context_length";
    const auto length = gguf_.whole(key);
    if (length && *length > 0) {
      gguf_.put_scaling("llama_4_scaling_original_max_position_embeddings", {*length},
                        gguf_.path(key));
    } else if (row_) {
      refuse(key, "is missing: attention.temperature_scale needs it", "",
             "give the length at which the temperature begins to rise");
    }
  }

  void put_original() {
    const auto said = gguf_.whole(original_key);
    const auto original = said ? said : gguf_.whole("context_length");
    if (original)
      gguf_.put_scaling("original_max_position_embeddings", {*original},
                        gguf_.path(said ? original_key : "context_length"));
  }

  void translate_longrope(const StoredTensor& shorter, const StoredTensor& longer) {
    gguf_.put_scaling("rope_type", {std::string("longrope")}, "rope_factors_long.weight");
    put_list("short_factor", shorter);
    put_list("long_factor", longer);
    put_original();
    // The file's amplitude; where it is what the rule gives, the rule is the better explanation.
    const double said = gguf_.number(amplitude_key).value_or(1);
    const auto context = gguf_.whole("context_length"), original = gguf_.whole(original_key);
    double rule = 1;
    if (context && original && *original > 1 && *context > *original) {
      const auto m = static_cast<double>(*context), l = static_cast<double>(*original);
      rule = std::sqrt(1 + std::log(m / l) / std::log(l));
    }
    if (std::abs(said - rule) > 1e-6 * rule)
      gguf_.put_scaling("attention_factor", {said}, gguf_.path(amplitude_key));
  }

  void put_list(std::string_view name, const StoredTensor& from) {
    Json::Array list;
    for (const double factor : gguf_.values(from)) list.push_back({meant(factor)});
    gguf_.put_scaling(name, {std::move(list)}, from.name);
  }

  GgufTranslation& gguf_;
  const Architecture* row_;
};

}  // namespace

bool has_sections(const GgufTranslation& gguf) {
  const auto* said = gguf.get<std::vector<std::int64_t>>("rope.dimension_sections");
  return said && said->size() > 1 && (*said)[0] > 0 && (*said)[1] > 0;
}

void translate_rope(GgufTranslation& gguf) {
  if (gguf.row() && gguf.row()->rotation == Rotation::none) return;
  RopeTranslation(gguf).translate();
}

}  // namespace posenc::detail
