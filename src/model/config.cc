// Reads a config.json: finds the family of the text model and runs its reader, then the towers, the
// lints and a trial of every plan. A family that is not known is read by the generic rule, with a
// warning that says what the rule assumes.
#include "src/model/config.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "src/core/small_letters.h"
#include "src/core/try.h"
#include "src/model/families/family.h"
#include "src/model/families/rope.h"
#include "src/model/open_clip.h"
#include "src/model/timm.h"

namespace posenc::detail {
namespace {

// The model within a wrapper: what retrieves with it, acts by it or speaks for it.
Section model_part(const Section& whole) {
  const Section inner = whole.section("thinker_config vlm_config");
  return inner ? model_part(inner) : whole;
}

}  // namespace

Section text_part(const Section& whole) {
  const Section model = model_part(whole);
  Section part = model.section("text_config llm_config language_config generator semantic_config");
  return part ? part : model;
}

namespace {

// The first of architectures, or the model's own class in auto_map; "" where there is none.
std::string first_class(const Section& whole) {
  const Json* list = whole.raw("architectures");
  const auto* names = list ? list->get<Json::Array>() : nullptr;
  const auto* name = names && !names->empty() ? names->front().get<std::string>() : nullptr;
  if (name) return *name;
  const Json* map = whole.raw("auto_map");
  for (const char* key : {"AutoModelForCausalLM", "AutoModel"}) {
    const Json* entry = map ? map->find(key) : nullptr;
    if (const std::string* path = entry ? entry->get<std::string>() : nullptr)
      return path->substr(std::min(path->rfind('.') + 1, path->size()));
  }
  return {};
}

// A known family whose file names a changed copy of its code: modeling_llama_yarn for llama.
void lint_changed_class(Reading& reading, const Section& whole) {
  const Json* map = whole.raw("auto_map");
  for (const char* key : {"AutoModelForCausalLM", "AutoModel"}) {
    const Json* entry = map ? map->find(key) : nullptr;
    const std::string* path = entry ? entry->get<std::string>() : nullptr;
    if (!path || !path->contains("modeling_" + reading.family + "_")) continue;
    return reading.warn("own_code", "auto_map names " + printable(*path, 80) +
                                        ", code of the model's own, which runs where "
                                        "trust_remote_code is on and may rotate otherwise; the "
                                        "plan is that of transformers' class for " +
                                        reading.family);
  }
}

std::string type_of(const Section& whole, const Section& text) {
  // Wan's own files have a model_type besides, which says what it makes a video of.
  const auto of_diffusers = whole.word("_class_name");
  if (of_diffusers && find_family(of_diffusers->value)) return of_diffusers->value;
  if (const std::string type(type_of_misnamed(first_class(whole))); !type.empty()) return type;
  if (const auto inner = text.word("model_type")) return inner->value;
  if (const auto outer = whole.word("model_type")) return std::string(inner_type(outer->value));
  return of_diffusers ? of_diffusers->value : std::string();
}

// "QWenLMHeadModel" is "qwen", "BailingMoeV2ForCausalLM" is "bailing_moe_v2".
std::string type_of_class(std::string_view name) {
  for (const std::string_view end :
       {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForSequenceClassification",
        "ForMaskedLM", "ForTokenClassification", "Model"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  if (const std::string_view own = type_named_otherwise(name); !own.empty())
    return std::string(own);
  return std::string(type_spelled_as(name));
}

// Of a file without model_type: the family of the class that it names, or a refusal that says what
// to write.
std::string type_by_class(Reading& reading, const Section& whole) {
  if (whole.has("vision_cfg") && whole.has("text_cfg")) {
    reading.refuse(
        "model_type",
        "is missing: this is open_clip's own description of a model, and a tower is not its own",
        "", "give the config.json of its copy in transformers, of clip or siglip");
    return {};
  }
  const bool of_timm = whole.has("pretrained_cfg") || whole.has("num_features");
  if (const auto architecture = of_timm ? whole.word("architecture") : std::nullopt) {
    reading.refuse(
        architecture->key,
        "is timm's own name of a model: a ViT or DeiT with a learned table is read by it, "
        "and no other",
        architecture->value, "give the config.json of its copy in transformers");
    return {};
  }
  const std::string name = first_class(whole);
  if (name.empty() && whole.integers(axes_of_pictures)) return "a transformer of pictures";
  if (name.empty() || name.size() > 100) {
    reading.refuse("model_type", "is missing", "",
                   "add it: pairing and defaults follow from the family");
    return {};
  }
  std::string type = type_of_class(name);
  if (!type.empty()) {
    reading.warn("type_from_class", "model_type is missing; architectures says " + name +
                                        ", which is read as " + type +
                                        "; write \"model_type\": \"" + type + "\"");
    return type;
  }
  reading.refuse("model_type", "is missing, and architectures names a class that is not known",
                 "'" + name + "'",
                 "write the model_type of its copy in transformers, or that of its own "
                 "configuration class (auto_map)");
  return {};
}

// A model that puts a head on a picture's tower has positions in its backbone alone.
Section main_part(const Section& text) {
  const auto type = text.word("model_type");
  Section backbone = text.section("backbone_config");
  if (!backbone || !type || find_family(type->value)) return text;
  text.reading.warn("family_remark", type->value + ": its backbone alone is explained");
  return backbone;
}

// What Hugging Face's generic rule takes for granted, said aloud.
void admit_assumptions(Reading& reading, const Section& text) {
  if (text.has("kv_lora_rank qk_rope_head_dim")) {
    reading.refuse(
        text.where("model_type"),
        "is not a known family, and its latent attention (kv_lora_rank) has no generic rule",
        "'" + reading.family + "'",
        "name the known family it shares its code with, such as deepseek_v3");
  }
  if (!text.has("rope_theta rotary_emb_base rope_parameters rope_scaling rope_base")) {
    reading.refuse(text.where("model_type"),
                   "is not a known family, and no key says how it encodes position",
                   "'" + reading.family + "'",
                   "name the known family it shares its code with, or add rope_theta");
  }
}

}  // namespace

std::string generic_rule(const Model& model) {
  bool window = false, all_rotate = true, all_causal = true;
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack)) continue;
    window |= group.window.has_value();
    all_causal &= group.causal;
    all_rotate &= group.mixer == Mixer::attention &&
                  std::ranges::none_of(group.schemes, [](const Scheme& each) {
                    return std::holds_alternative<NoPe>(each);
                  });
  }
  return "assumes pairing (r, r + d/2) from the first channel on, logits × 1/√head_dim" +
         std::string(all_causal ? ", a causal mask" : "") +
         (all_rotate ? ", that every layer rotates" : "") +
         (window ? "" : ", and that none has a window") +
         (all_rotate && !window ? ""
                                : "; which layers rotate or have a window is what the file says");
}

void mark_assumed(Model& model) {
  for (LayerGroup& group : model.groups) {
    for (Provenance& value : group.provenance) {
      if (value.origin != Origin::family) continue;
      value.origin = Origin::assumed;
      value.detail = "generic rule";
    }
  }
}

namespace {

// An unknown family that says outright that it does something else.
const Family* stated_scheme(const Section& text) {
  const auto alibi = text.flag("alibi use_alibi");
  if (alibi && alibi->value) return &unknown_family_with_alibi();
  const auto type = text.word("position_embedding_type");
  if (type && type->value == "alibi") return &unknown_family_with_alibi();
  if (type && contains_word("absolute learned learned_absolute relative_key relative_key_query",
                            type->value))
    return &unknown_family_with_table();
  return nullptr;
}

// Whether a key's name speaks of what layers do with positions, and not of their perceptrons.
bool speaks_of_attention(std::string_view key) {
  constexpr std::string_view read = "layer_types layers_block_type block_types";
  constexpr std::string_view words[] = {"attn",   "attention",  "rope",       "rotary",
                                        "window", "slid",       "hybrid",     "mixer",
                                        "layout", "block_type", "layer_type", "heads"};
  return !contains_word(read, key) && !key.contains("mlp") &&
         std::ranges::any_of(words, [&](std::string_view word) { return key.contains(word); });
}

// Numbers of layers, each once and in order.
bool are_layers(const Json::Array& list, std::size_t layers) {
  std::int64_t before = -1;
  for (const Json& each : list) {
    const auto* number = each.get<std::int64_t>();
    if (!number || *number <= before || *number >= static_cast<std::int64_t>(layers)) return false;
    before = *number;
  }
  return list.size() < layers;
}

// A list with an entry for each layer, of two kinds or more, that the generic rule passes over: in
// a family that nobody knows it may say which layers rotate or attend.
void warn_of_layer_lists(Reading& reading, const Section& text) {
  std::size_t layers = 0;
  for (const LayerGroup& group : reading.model.groups)
    if (group.stack == Stack::text) layers += group.layers.size();
  for (const auto& [key, value] : text.members()) {
    const auto* list = value.get<Json::Array>();
    if (!list || list->empty() || layers < 2 || !speaks_of_attention(key)) continue;
    if (list->size() != layers) {
      if (are_layers(*list, layers) && key.contains("layer") && !reading.asked.contains(key))
        reading.warn("layer_list_unread", text.where(key) + " names " +
                                              std::to_string(list->size()) + " of " +
                                              std::to_string(layers) +
                                              " layers and is not read: it may say which of them "
                                              "rotate, attend or slide");
      continue;
    }
    const bool is_read = std::ranges::any_of(reading.model.groups, [&](const LayerGroup& group) {
      return std::ranges::any_of(group.provenance, [&](const Provenance& said) {
        return said.origin == Origin::file && said.detail.contains(key);
      });
    });
    // Names that are all different are no kinds of layers (modules that an adapter trains).
    std::set<std::string> kinds;
    for (const Json& each : *list) kinds.insert(each.text());
    const bool all_differ = list->front().get<std::string>() && kinds.size() == list->size();
    if (kinds.size() == 1 || is_read || all_differ) continue;
    reading.warn("layer_list_unread",
                 text.where(key) + " has an entry for each of " + std::to_string(layers) +
                     " layers and is not read: it may say which of them rotate, attend or slide");
  }
}

void read_text(Reading& reading, const Section& whole, const Section& text) {
  std::string type = type_of(whole, text);
  if (type.empty()) type = type_by_class(reading, whole);
  if (type.empty()) return;
  if (constexpr std::size_t longest = 100; type.size() > longest) {
    reading.refuse("model_type", "must be a short word", std::to_string(type.size()) + " bytes");
    return;
  }
  reading.family = type;
  if (const Json* two = text.raw("position_encoding_2d"); two && two->text() == "true") {
    reading.refuse(text.where("position_encoding_2d"),
                   "is not covered: two position ids for each token", "true",
                   "ChatGLM2 and later have one");
  }
  if (const Family* family = find_family(type)) {
    reading.model.own_code = family->own_code;
    family->read(text, *family);
    return;
  }
  reading.model.known_family = false;
  if (text.integers(axes_of_pictures)) {
    unknown_family_with_axes().read(text, unknown_family_with_axes());
    reading.warn("unknown_family",
                 "'" + type +
                     "' is not a known family: read by what diffusers' transformers have in "
                     "common: the axes' channels of the file, neighbours paired" +
                     (text.has("rope_theta theta") ? "" : ", base 10000"));
    mark_assumed(reading.model);
    return;
  }
  if (whole.has("_class_name")) {
    reading.refuse("_class_name",
                   "is a class of pictures or sound that posenc does not know, and no key says "
                   "which channels each axis has",
                   "'" + type + "'",
                   "the class's own code says it; posenc rotate --scheme axial computes it");
    return;
  }
  if (const Family* stated = stated_scheme(text)) {
    reading.warn(
        "unknown_family",
        "'" + type + "' is not a known family: read by what the file says of its positions");
    stated->read(text, *stated);
  } else {
    admit_assumptions(reading, text);
    unknown_family().read(text, unknown_family());
    reading.warn("unknown_family",
                 "'" + type +
                     "' is not a known family: read by Hugging Face's generic rule, which " +
                     generic_rule(reading.model));
  }
  warn_of_layer_lists(reading, text);
  mark_assumed(reading.model);
}

// Keys rotated for one length are stale for another; a table that ends is a limit, and no such
// thing.
void warn_of_lengths(Reading& reading, const LayerGroup& group, const Plan& whole) {
  if (!whole.rotate || !whole.valid) return;
  for (const Scheme& scheme : group.schemes) {
    const auto plan = compile(scheme, group.geometry);
    if (!plan || !plan->rotate || !plan->valid) continue;
    reading.warn(
        "length_dependent",
        "the rotation changes with the length: beyond " + std::to_string(plan->valid->to) +
            " positions it is another one, and keys cached before are stale; choose a length for a "
            "sequence and keep it, or cache keys before rotation");
  }
}

// Numbers that an explanation of the plan shows.
std::size_t numbers_of(const Plan& plan) {
  std::size_t count = plan.rotate ? plan.rotate->frequencies.radians.size() : 0;
  const auto* waves = plan.add ? std::get_if<Waves>(&plan.add->kind) : nullptr;
  if (waves) count += waves->frequency.size();
  const auto* table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  if (table && table->values.owned) count += table->values.owned->size();
  if (table) count += table->rows.row.size();
  for (std::int64_t list = 0; plan.relative && list < plan.relative->lists(); ++list)
    count += plan.relative->list(list).row.size();
  return count;
}

// Some hundred times what models need; an explanation of so many takes some ten megabytes.
constexpr std::size_t most_numbers = std::size_t{1} << 16;

}  // namespace

void compile_all(Reading& reading) {
  std::size_t numbers = 0;
  for (const LayerGroup& group : reading.model.groups) {
    if (reading.error) return;
    const auto plan = compile(group);
    if (!plan) {
      const Error& e = plan.error();
      reading.refuse(e.where, e.rule, e.got, e.cure);
      return;
    }
    numbers += numbers_of(*plan);
    if (numbers > most_numbers) {
      reading.refuse(
          "the model",
          "must need " + std::to_string(most_numbers) + " frequencies and biases or fewer",
          std::to_string(numbers) + " or more for " + std::to_string(reading.model.groups.size()) +
              " kinds of layers",
          "check the widths, the heads and layer_types");
      return;
    }
    warn_of_lengths(reading, group, *plan);
  }
}

std::string stem(std::string_view name, std::string_view extension) {
  if (const std::size_t slash = name.find_last_of("/\\"); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  if (name.ends_with(extension)) name.remove_suffix(extension.size());
  return printable(name);
}

Expected<Model> read_config_json(const Json& json, std::string_view name) {
  if (!json.get<Json::Object>()) {
    return fail(name, "must be a JSON object", json.kind(), "give a model's config.json");
  }
  Reading reading;
  reading.file = name;
  reading.model.name = stem(name, ".json");
  reading.model.files = {{std::string(name), FileFormat::config, FileRole::model}};

  std::optional<Json> copy = from_open_clip(json);
  if (!copy) copy = from_timm(json);
  const Section whole(reading, copy ? &*copy : &json), model = model_part(whole);
  if (const auto version = whole.word("transformers_version")) reading.read_version(version->value);
  const Section text = main_part(text_part(whole));
  const auto outer = whole.word("model_type"), inner = model.word("model_type");
  read_text(reading, model, text);
  const auto by_class = whole.word("_class_name");
  const bool as_said = outer && (!by_class || by_class->value != reading.family) &&
                       type_of_misnamed(first_class(whole)).empty();
  reading.model.family = as_said ? outer->value : reading.family;
  if (const auto remark = outer_remark(reading.model.family); !remark.empty())
    reading.warn("family_remark", reading.model.family + ": " + std::string(remark));
  const auto dtype = text.word("torch_dtype dtype"), outer_dtype = whole.word("torch_dtype dtype");
  if (const auto& said = dtype ? dtype : outer_dtype) reading.model.dtype = said->value;

  const bool has_tower = find_group(reading.model, 0, Stack::vision) != nullptr;
  const Family* const family = find_family(reading.family);
  const bool has_parts = family && family->read == read_parts;
  if (const Section vision = model.section("vision_config"); vision && !has_tower)
    read_tower(vision, inner ? inner->value : "");
  if (const Section audio = model.section("audio_config"); audio && !has_parts) read_audio(audio);
  lint_ignored(text, family ? *family : unknown_family());
  if (family && !family->own_code) lint_changed_class(reading, whole);
  if (!whole.has("_class_name"))
    if (family) warn_of_own_class(whole, *family);
  lint_unasked(text, !family || family->own_code || whole.has("auto_map"));
  compile_all(reading);
  if (reading.error) return std::unexpected(*reading.error);
  return std::move(reading.model);
}

}  // namespace posenc::detail

namespace posenc {

Expected<Model> read_config(std::string_view json_text, std::string_view name) {
  POSENC_TRY(json, detail::parse_json(json_text, name));
  return detail::read_config_json(json, name);
}

}  // namespace posenc
