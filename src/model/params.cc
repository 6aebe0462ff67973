// Reads a params.json as the config.json that says the same: a table renames its keys, and three
// values that differ in more than the name (the window, YaRN's switch, the type of the scaling) are
// put into Hugging Face's words. Meta's file of the same name, which says less, is read as well.
// What mistral-inference does where the file is silent:
//   pairing      neighbours (2r, 2r + 1); Hugging Face's checkpoints permute the rows of wq and
//                wk and pair halves, which is the same model
//   rope_theta   1e6, or 1e4 where there is a sliding window
//   context      128,000, the length of its table
#include "src/model/params.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/model/families/layer_rules.h"

namespace posenc::detail {
namespace {

struct Row {
  std::string_view read,
      file;  // paths; of rows with one `read` the first that the file says counts
};

constexpr Row rows[] = {
    {"model_type", "model_type"},
    {"hidden_size", "dim"},
    {"num_hidden_layers", "n_layers"},
    {"num_attention_heads", "n_heads"},
    {"num_key_value_heads", "n_kv_heads"},
    {"head_dim", "head_dim"},
    {"qk_nope_head_dim", "qk_nope_head_dim"},
    {"qk_rope_head_dim", "qk_rope_head_dim"},
    {"kv_lora_rank", "kv_lora_rank"},
    {"v_head_dim", "v_head_dim"},
    {"dtype", "dtype"},
    {"rope_theta", "rope_theta"},
    {"max_position_embeddings", "max_position_embeddings"},
    {"max_position_embeddings", "max_seq_len"},
    {"sliding_window", "sliding_window"},
    {"sliding_window", "_sliding_window"},
    {"rope_scaling.factor", "yarn.factor"},
    {"rope_scaling.original_max_position_embeddings", "yarn.original_max_position_embeddings"},
    {"rope_scaling.beta_fast", "yarn.beta"},
    {"rope_scaling.beta_slow", "yarn.alpha"},
    {"rope_scaling.apply_scale", "yarn.apply_scale"},
    {"rope_scaling.llama_4_scaling_beta", "llama_4_scaling.beta"},
    {"rope_scaling.llama_4_scaling_original_max_position_embeddings",
     "llama_4_scaling.original_max_position_embeddings"},
    {"vision_config", "vision_encoder"},
    {"vision_config", "multimodal.vision_encoder_args"},
    {"audio_config", "multimodal.whisper_model_args"},
};

constexpr std::string_view engine = "mistral-inference";

Family family_of(bool window, bool latent) {
  Family family{.types = engine,
                .context = 128'000,
                .rope = {.pairing = Pairing::interleaved, .theta = window ? 1e4 : 1e6},
                .layers = {.pattern = all_slide}};
  if (latent)
    family.attention.mla = {.nope = 1, .rope = 1, .rank = 1};  // the file's own: all are required
  return family;
}

bool said(const Json* json) { return json && !json->is_null(); }

const Json* find(const Json& json, std::string_view path) {
  const std::size_t dot = path.find('.');
  const Json* inner = json.find(path.substr(0, dot));
  return inner && dot != std::string_view::npos ? find(*inner, path.substr(dot + 1)) : inner;
}

// Sets what a path says; objects on its way are made.
void put(Json& json, std::string_view path, Json value) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  if (!json.get<Json::Object>()) json.value = Json::Object{};
  auto& object = std::get<Json::Object>(json.value);
  auto member = std::ranges::find(object, key, &JsonMember::key);
  if (member == object.end()) member = object.insert(object.end(), {std::string(key), {}});
  if (dot == std::string_view::npos)
    member->value = std::move(value);
  else
    put(member->value, path.substr(dot + 1), std::move(value));
}

// Meta's llama-models: neighbours pair, the base is 10000 where the file has none. No key says the
// context: Llama 2 has 4,096, Code Llama of base 1000000 has 16,384, Llama 3 of base 500000 has
// 8,192, and 131,072 with use_scaled_rope, which stretches by 8, in the 1B and 3B models of Llama
// 3.2 by 32.
constexpr std::string_view meta = "llama-models";
constexpr std::string_view keys_of_meta[] = {"multiple_of", "ffn_dim_multiplier",
                                             "use_scaled_rope"};
// Llama 4 of the same code: layers without position see everything, the others a chunk.
constexpr std::string_view keys_of_llama_4 = "nope_layer_interval attention_chunk_size";

bool is_of_meta(const Json& file) {
  return std::ranges::any_of(keys_of_meta,
                             [&](std::string_view key) { return said(file.find(key)); });
}

class ParamsReader {
 public:
  ParamsReader(const Json& file, std::string_view name) : file_(file), meta_(is_of_meta(file)) {
    reading_.file = name;
    reading_.family = meta_ ? meta : engine;
    reading_.model.name = stem(name, ".json");
    reading_.model.family = meta_ ? "llama" : "mistral";
    reading_.model.files = {{std::string(name), FileFormat::params, FileRole::model}};
  }

  Expected<Model> read() {
    check();
    rename();
    read_yarn();
    read_window();
    read_vision();
    if (meta_) read_meta();
    if (reading_.error) return std::unexpected(*reading_.error);

    const Section config(reading_, &config_);
    const bool latent = config.has("qk_rope_head_dim qk_nope_head_dim kv_lora_rank");
    if (latent) require_latent(config);
    const auto type = config.word("model_type");
    if (type && type->value == "mamba") {
      read_recurrence(config, *find_family("mamba"));
    } else {
      if (type && type->value != "transformer")
        reading_.refuse(type->key, "is not one of a params.json",
                        "'" + type->value.substr(0, 60) + "'",
                        "transformer or mamba, or give the model's config.json");
      Family family = family_of(config.has("sliding_window"), latent);
      if (is_llama_4()) family = *find_family("llama4_text");
      if (meta_) family.types = meta, family.context = 0, family.rope.theta = 10000;
      read_decoder(config, family);
      tell_defaults(config);
    }
    if (const auto dtype = config.word("dtype")) reading_.model.dtype = dtype->value;
    if (const Section vision = config.section("vision_config")) read_tower(vision, engine);
    if (config.section("audio_config")) {
      reading_.warn("audio_not_explained",
                    "the audio tower is not covered; only the other parts are explained");
    }
    compile_all(reading_);
    if (reading_.error) return std::unexpected(*reading_.error);
    return std::move(reading_.model);
  }

 private:
  bool is_llama_4() const {
    return meta_ && std::ranges::any_of(split(keys_of_llama_4), [&](std::string_view key) {
             return said(file_.find(key));
           });
  }

  // Meta's code tunes no temperature unless the file says so; without an interval all rotate.
  void read_llama_4() {
    if (!is_llama_4()) return;
    const auto take = [&](std::string_view key, std::string_view from, const Json& otherwise) {
      const Json* value = file_.find(from);
      put(config_, key, said(value) ? *value : otherwise);
      reading_.spelled.push_back({std::string(key), std::string(from)});
    };
    take("no_rope_layer_interval", "nope_layer_interval", {most_layers + 1});
    take("attention_chunk_size", "attention_chunk_size", {});
    take("attn_temperature_tuning", "attn_temperature_tuning", {false});
    take("floor_scale", "floor_scale", {8192.0});
    take("attn_scale", "attn_scale", {0.1});
  }

  static constexpr std::string_view length_key = "max_position_embeddings";

  void read_meta() {
    read_llama_4();
    const auto number = [&](std::string_view key) {
      const Json* value = file_.find(key);
      const auto* whole = value ? value->get<std::int64_t>() : nullptr;
      const auto* real = value ? value->get<double>() : nullptr;
      return whole ? static_cast<double>(*whole) : real ? *real : 0.0;
    };
    const Json* scaled = file_.find("use_scaled_rope");
    const bool is_scaled = scaled && scaled->text() == "true";
    const std::int64_t context = is_llama_4()                  ? (is_scaled ? 10485760 : 1048576)
                                 : is_scaled                   ? 131072
                                 : number("rope_theta") == 5e5 ? 8192
                                 : number("rope_theta") == 1e6 ? 16384
                                                               : 4096;
    if (!said(config_.find("max_position_embeddings"))) {
      put(config_, "max_position_embeddings", {.value = context});
      std::erase_if(reading_.spelled, [](const auto& one) { return one.first == length_key; });
      reading_.spelled.push_back(
          {std::string(length_key), std::string("not in the file: what Meta's models with its ") +
                                        (is_scaled ? "use_scaled_rope" : "rope_theta") + " have"});
    }
    if (!is_scaled) return;
    constexpr double widest_of_small = 3072;  // the 3B model
    const double said_factor = number("rope_scaling_factor"),
                 said_high = number("rope_high_freq_factor");
    const double factor = said_factor > 0 ? said_factor : number("dim") <= widest_of_small ? 32 : 8;
    for (const auto& [key, value, from] :
         {std::tuple("factor", factor, said_factor > 0 ? "rope_scaling_factor" : "use_scaled_rope"),
          {"low_freq_factor", 1.0, "use_scaled_rope"},
          {"high_freq_factor", said_high > 0 ? said_high : 4.0,
           said_high > 0 ? "rope_high_freq_factor" : "use_scaled_rope"}}) {
      put(config_, "rope_scaling." + std::string(key), {.value = value});
      reading_.spelled.push_back({"rope_scaling." + std::string(key), from});
    }
    put(config_, "rope_scaling.original_max_position_embeddings", {.value = std::int64_t{8192}});
    put(config_, "rope_scaling.rope_type", {.value = std::string("llama3")});
    for (const char* key : {"rope_scaling.original_max_position_embeddings",
                            "rope_scaling.rope_type", "rope_scaling"})
      reading_.spelled.push_back({key, "use_scaled_rope"});
    if (said_factor > 0) return;
    reading_.warn("family_remark", "use_scaled_rope names no factor: " + number_text(factor) +
                                       " is what Meta's code "
                                       "has for a width of " +
                                       number_text(number("dim")) +
                                       " (32 in Llama 3.2's 1B and 3B, else 8)");
  }

  void check() {
    for (const std::string_view part : {"yarn", "llama_4_scaling"}) {
      const Json* json = file_.find(part);
      if (!said(json)) continue;
      if (!json->get<Json::Object>()) {
        reading_.refuse(part, "must be an object", json->text(), "correct the file");
        return;
      }
      for (const JsonMember& member : std::get<Json::Object>(json->value)) {
        const std::string path = std::string(part) + "." + member.key;
        if (std::ranges::find(rows, path, &Row::file) == std::end(rows))
          reading_.warn("unknown_key", path + " is not read and has no effect");
      }
    }
  }

  void rename() {
    config_.value = Json::Object{};
    for (const Row& row : rows) {
      const Json* value = find(file_, row.file);
      if (!said(value) || said(find(config_, row.read))) continue;
      put(config_, row.read, *value);
      reading_.spelled.push_back({std::string(row.read), std::string(row.file)});
    }
    for (const Row& row : rows) {  // what is missing is missed by the name it would have
      if (std::ranges::find(reading_.spelled, row.read,
                            &std::pair<std::string, std::string>::first) == reading_.spelled.end())
        reading_.spelled.push_back({std::string(row.read), std::string(row.file)});
    }
    reading_.spelled.push_back({"rope_scaling", "yarn"});
  }

  void read_yarn() {
    const Json* yarn = file_.find("yarn");
    const auto* members = said(yarn) ? yarn->get<Json::Object>() : nullptr;
    if (!members || members->empty()) return;
    for (const std::string_view key : {"factor", "original_max_position_embeddings"}) {
      if (!said(yarn->find(key)))
        reading_.refuse("yarn." + std::string(key), "is missing: yarn needs it", "",
                        "write what the model was trained with");
    }
    const Section scaling = Section(reading_, &config_).section("rope_scaling");
    const auto apply = scaling.flag("apply_scale");
    if (!(apply && !apply->value) && said(file_.find("kv_lora_rank"))) {
      reading_.refuse("yarn.apply_scale", "must be false beside latent attention (kv_lora_rank)",
                      apply ? "true" : "nothing, which is true",
                      "engines disagree on what it would scale");
    }
    put(config_, "rope_scaling.rope_type", {.value = std::string("yarn")});
    reading_.spelled.push_back({"rope_scaling.rope_type", "yarn"});
    auto& object = std::get<Json::Object>(
        std::ranges::find(std::get<Json::Object>(config_.value), "rope_scaling", &JsonMember::key)
            ->value.value);
    std::erase_if(object, [](const JsonMember& member) { return member.key == "apply_scale"; });
    if (apply && !apply->value) {  // no magnitude on cos and sin
      put(config_, "rope_scaling.attention_factor", {.value = 1.0});
      reading_.spelled.push_back({"rope_scaling.attention_factor", "yarn.apply_scale"});
    }
  }

  // A list is repeated over the layers: a window, or null for full attention.
  void read_window() {
    const Json* window = config_.find("sliding_window");
    const auto* list = window ? window->get<Json::Array>() : nullptr;
    if (!list) return;
    const std::string key = reading_.as_spelled("sliding_window");
    const Json* count = config_.find("num_hidden_layers");
    const auto* layers = count ? count->get<std::int64_t>() : nullptr;
    if (!layers || *layers < 1 || *layers > most_layers) return;  // refused by the sizes
    if (list->empty() || *layers % std::ssize(*list) != 0) {
      reading_.refuse(key, "must divide the layers: the list is repeated over them",
                      std::to_string(list->size()) + " entries for " + std::to_string(*layers),
                      "correct it or n_layers");
      return;
    }
    Json width;
    Json::Array types;
    for (std::size_t i = 0; i < static_cast<std::size_t>(*layers); ++i) {
      const Json& entry = (*list)[i % list->size()];
      types.push_back({std::string(said(&entry) ? "sliding_attention" : "full_attention")});
      if (!said(&entry)) continue;
      if (said(&width) && width.text() != entry.text()) {
        reading_.refuse(key, "must have one window for all layers that slide",
                        width.text() + " and " + entry.text(), "several are not covered");
        return;
      }
      width = entry;
    }
    put(config_, "sliding_window", width);
    if (!said(&width)) return;
    put(config_, "layer_types", {.value = std::move(types)});
    reading_.spelled.push_back({"layer_types", key});
  }

  void read_vision() {
    if (!said(config_.find("vision_config"))) return;
    put(config_, "vision_config.model_type", {.value = std::string(engine)});
  }

  void require_latent(const Section& config) {
    for (const std::string_view key : {"qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank"}) {
      if (!config.has(key))
        reading_.refuse(config.where(key), "is missing beside the others of latent attention", "",
                        "add it");
    }
  }

  // Where the engine's default depends on the file, and where two files of one model look
  // different.
  void tell_defaults(const Section& config) {
    const std::string window =
        config.has("sliding_window") ? ", with a window" : ", without a window";
    for (LayerGroup& group : reading_.model.groups) {
      for (Provenance& value : group.provenance) {
        if (value.field == "rope_theta" && value.origin == Origin::family) value.detail += window;
        if (value.field == "pairing")
          value.detail += "; Hugging Face's files permute wq and wk and pair halves";
      }
    }
    // The switch is the format's own word; no engine that reads the format ignores it.
    std::erase_if(reading_.model.warnings,
                  [](const Warning& warning) { return warning.code == "attention_factor_given"; });
  }

  const Json& file_;
  const bool meta_;
  Json config_;  // in Hugging Face's words
  Reading reading_;
};

}  // namespace

bool is_params(const Json& json) {
  // diffusers' transformer/config.json has keys of the same names, and its class.
  if (said(json.find("_class_name"))) return false;
  // Transformers of pictures and sound, and recurrences, are spelled with the same words.
  for (const std::string_view key : {"patch_size", "in_channels", "in_dim", "sample_rate",
                                     "frame_rate", "quantizer", "n_mels", "ssm_cfg", "d_state"})
    if (said(json.find(key))) return false;
  for (const std::string_view key : split(axes_of_pictures))
    if (said(json.find(key))) return false;
  const Json* type = json.find("model_type");
  const auto* word = type ? type->get<std::string>() : nullptr;
  return said(json.find("dim")) && said(json.find("n_layers")) &&
         (!said(type) || (word && contains_word("transformer mamba", *word)));
}

Expected<Model> read_params_json(const Json& json, std::string_view name) {
  if (!json.get<Json::Object>()) {
    return fail(name, "must be a JSON object", json.kind(), "give a model's params.json");
  }
  return ParamsReader(json, name).read();
}

}  // namespace posenc::detail

namespace posenc {

Expected<Model> read_params(std::string_view json_text, std::string_view name) {
  POSENC_TRY(json, detail::parse_json(json_text, name));
  return detail::read_params_json(json, name);
}

}  // namespace posenc
