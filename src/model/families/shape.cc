// Reads a model's sizes in the spellings of all families. No two families use one word for two
// sizes, so a single list of spellings serves them all.
#include <cmath>
#include <numeric>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {

Geometry ModelDims::geometry() const {
  return {.width = width, .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
}

std::vector<std::int64_t> all_layers(std::int64_t count) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(count));
  std::iota(layers.begin(), layers.end(), std::int64_t{0});
  return layers;
}

std::int64_t head_dim_of(const Section& config, ProvenanceList& notes, std::int64_t width,
                         std::int64_t heads) {
  if (config.reading.error || heads == 0) return 0;
  if (width % heads != 0) {
    config.reading.refuse(config.where("hidden_size"), "must be a multiple of the attention heads",
                          std::to_string(width) + " for " + std::to_string(heads) + " heads",
                          "give head_dim, or correct one of them");
    return 0;
  }
  if (width / heads > most_head_dim) {
    config.reading.refuse(
        config.where("hidden_size"),
        "must give heads of " + std::to_string(most_head_dim) + " channels or fewer",
        std::to_string(width) + " for " + std::to_string(heads) + " heads",
        "give head_dim, or correct one of them");
    return 0;
  }
  note(notes, "head_dim", std::to_string(width / heads), Origin::derived,
       std::to_string(width) + " / " + std::to_string(heads) + " heads");
  return width / heads;
}

namespace {

// Spellings with the side in front: "encoder_layers encoder_num_hidden_layers ".
std::string sided(const Family& family, std::string_view names) {
  std::string text;
  if (family.side.empty()) return text;
  for (const std::string_view name : split(names))
    text += std::string(family.side) + "_" + std::string(name) + " ";
  return text;
}

std::int64_t kv_heads_of(const Section& config, const Family& family, ProvenanceList& notes,
                         std::int64_t heads) {
  const Range range{.least = 1, .most = static_cast<double>(most_heads)};
  // A key that lists a number for each layer is read with the layers.
  const Json* const listed = config.raw(family.heads.kv_of_layers);
  const bool is_list = listed && listed->get<Json::Array>();
  const auto sharers = config.integer(family.heads.sharers, range);
  // Of gpt-fast and its kin, where -1 stands for as many as there are heads.
  const Json* const local = config.raw("n_local_heads");
  const std::int64_t* const count = local ? local->get<std::int64_t>() : nullptr;
  const std::string_view of_gpt_fast = count && *count > 0 ? " n_local_heads" : "";
  const auto said =
      is_list || sharers
          ? std::nullopt
          : config.integer(sided(family, "num_key_value_heads") +
                               "num_key_value_heads n_head_kv num_kv_heads "
                               "multi_query_group_num num_query_groups num_attention_groups" +
                               std::string(of_gpt_fast),
                           range);
  const auto shared =
      config.flag("multi_query_attention multi_query");          // ChatGLM; Falcon, GPT-BigCode
  const auto grouped = config.flag("new_decoder_architecture");  // Falcon's second kind
  const bool one = shared && shared->value && !(grouped && grouped->value) &&
                   (!said || !family.heads.count_groups);
  std::int64_t kv_heads = heads;
  if (one) {
    kv_heads = 1;
    note(notes, "kv_heads", "1", Origin::file, shared->key + ": one for all query heads");
  } else if (said && !(shared && !shared->value && !grouped)) {
    kv_heads = said->value;
    note(notes, "kv_heads", std::to_string(kv_heads), Origin::file, said->key);
  } else if (sharers) {
    kv_heads = (heads + sharers->value - 1) / sharers->value;
    note(notes, "kv_heads", std::to_string(kv_heads), Origin::derived, "heads / " + sharers->key);
  } else if (family.sizes.kv_heads > 0 && !shared) {
    kv_heads = family.sizes.kv_heads;
    note(notes, "kv_heads", std::to_string(kv_heads), Origin::family,
         "default of " + config.reading.family);
  } else {
    note(notes, "kv_heads", std::to_string(kv_heads), Origin::derived, "as many as query heads");
  }
  if (config.reading.error || heads == 0) return kv_heads;
  if (kv_heads > heads || heads % kv_heads != 0) {
    config.reading.refuse(
        said ? said->key : config.where("num_key_value_heads"), "must divide the query heads",
        std::to_string(kv_heads) + " for " + std::to_string(heads), "correct one of them");
  }
  return kv_heads;
}

// A file may list its layers and not count them (Nemotron-H, as transformers 5 writes it).
std::int64_t layers_of(const Section& config, const Family& family, ProvenanceList& notes) {
  const std::string names = sided(family, "layers num_hidden_layers") +
                            "num_hidden_layers n_layer n_layers num_layers layers "
                            "num_transformer_layers";
  if (!config.has(names)) {
    const auto list = config.words("layer_types layers_block_type");
    const auto letters = config.word("hybrid_override_pattern");
    const std::size_t count = list ? list->value.size() : letters ? letters->value.size() : 0;
    if (count > 0 && count <= static_cast<std::size_t>(most_layers)) {
      note(notes, "layers", std::to_string(count), Origin::derived,
           "entries of " + (list ? list->key : letters->key));
      return static_cast<std::int64_t>(count);
    }
  }
  return config.size(notes, "layers", names, family.sizes.layers, most_layers);
}

}  // namespace

std::int64_t latent_rotated(const Section& config, const Family& family, ProvenanceList& notes) {
  const auto said =
      config.integer(family.heads.dim_rotates ? "head_dim qk_rope_head_dim" : "qk_rope_head_dim",
                     Range{.least = 0, .most = static_cast<double>(most_head_dim)});
  const std::int64_t rotated = said ? said->value : family.attention.mla.rope;
  note(notes, "qk_rope_head_dim", std::to_string(rotated), said ? Origin::file : Origin::family,
       said ? said->key : "default of " + config.reading.family);
  return rotated;
}

// head_dim where the family's code reads it.
std::optional<Found<std::int64_t>> said_head_dim(const Section& config, const Family& family,
                                                 const ModelDims& dims) {
  const Range range{.least = 1, .most = static_cast<double>(most_head_dim)};
  auto said = config.integer("head_dim attention_head_dim hidden_size_per_head", range);
  if (!said) said = config.integer("kv_channels", range);
  if (!said || !family.heads.share_width) return said;
  if (dims.heads > 0 && said->value * dims.heads != dims.width) {
    config.reading.warn("unread_key", said->key + " is " + std::to_string(said->value) +
                                          ", and heads of " + config.reading.family +
                                          " share the width whatever it says");
  }
  return std::nullopt;
}

namespace {

// The spellings that the family does not use for something else.
std::string spellings(const Family& family, std::string_view names) {
  std::string left;
  for (const std::string_view name : split(names))
    if (!contains_word(family.other_keys, name)) left += std::string(name) + " ";
  return left;
}

// Files have several lengths by design (what was trained, what is served, where a tokenizer cuts),
// so that two which differ are no slip.
std::optional<Found<std::int64_t>> said_context(const Section& config, const Family& family) {
  const std::string names = spellings(family,
                                      "max_position_embeddings max_position_embedding n_positions "
                                      "n_ctx seq_length max_seq_len max_sequence_length "
                                      "model_max_length max_source_positions max_context_length");
  const auto present = config.names_present(names);
  if (present.empty()) return std::nullopt;
  const std::string_view first = present.front();
  // Half of the programs know no other name of a length than the first.
  if (first == "model_max_length")
    config.reading.warn("context_key",
                        config.where(first) + " " + config.raw(first)->text() +
                            " is the context, and max_position_embeddings is not there: programs "
                            "that read only that (LM Studio) offer 4,096 or 2,048 tokens");
  // Command R's files keep the length of the class beside the one that was trained; vLLM too serves
  // up to the second.
  const Range lengths{.least = 1, .most = static_cast<double>(most_length)};
  if (std::ranges::find(present, "model_max_length") != present.end()) {
    auto shorter = config.integer(first, lengths),
         longer = config.integer("model_max_length", lengths);
    if (shorter && longer && longer->value > shorter->value) {
      config.reading.warn("lengths_differ",
                          config.where(first) + " is " + config.raw(first)->text() +
                              " and model_max_length, which is taken for the context, is " +
                              config.raw("model_max_length")->text());
      return longer;
    }
  }
  // Vicuna's 16k files: 4096, a linear factor of 4, and max_sequence_length 16384. Other scalings
  // count from a length of their own.
  const Section scaling = config.section("rope_scaling rope_parameters");
  const auto type = scaling ? scaling.word("rope_type type") : std::nullopt;
  const auto factor =
      type && type->value == "linear" && !scaling.has("original_max_position_embeddings")
          ? scaling.number("factor")
          : std::nullopt;
  if (const auto base = config.integer(first, lengths); base && factor) {
    for (const std::string_view other : present) {
      const auto whole = config.integer(other, lengths);
      if (!whole || whole->value <= base->value ||
          static_cast<double>(whole->value) !=
              std::round(factor->value * static_cast<double>(base->value)))
        continue;
      config.reading.warn("lengths_differ",
                          config.where(first) + " is " + config.raw(first)->text() + " and " +
                              config.where(other) + " is " + config.raw(other)->text() +
                              ", as many times as rope_scaling's factor: the second is taken for "
                              "the context");
      return whole;
    }
  }
  for (const std::string_view other : present)
    if (config.raw(other)->text() != config.raw(first)->text())
      config.reading.warn("lengths_differ",
                          config.where(first) + " is " + config.raw(first)->text() + " and " +
                              config.where(other) + " is " + config.raw(other)->text() +
                              ": the first is taken for the context; vLLM takes the smallest");
  return config.integer(first, lengths);
}

}  // namespace

// Of layers with unlike heads, where the file has no number beside the list: the most.
std::int64_t heads_of_layers(const Section& config, const Family& family, ProvenanceList& notes) {
  if (family.heads.of_layers.empty() || config.has("num_attention_heads n_head n_heads num_heads"))
    return 0;
  const auto list = config.integers(family.heads.of_layers,
                                    Range{.least = 0, .most = static_cast<double>(most_heads)});
  if (!list || list->value.empty()) return 0;
  const std::int64_t most = *std::ranges::max_element(list->value);
  note(notes, "heads", std::to_string(most), Origin::derived, "the most of " + list->key);
  return most;
}

ModelDims read_dims(const Section& config, const Family& family, ProvenanceList& notes) {
  Reading& reading = config.reading;
  ModelDims dims;
  const std::size_t first = notes.size();
  dims.layers = layers_of(config, family, notes);
  dims.width = config.size(
      notes, "width",
      spellings(family, "hidden_size n_embd d_model n_embed dim emb_dim embed_dim model_dim"),
      family.sizes.width, most_width);
  dims.heads = heads_of_layers(config, family, notes);
  if (dims.heads == 0)
    dims.heads = config.size(notes, "heads",
                             sided(family, "attention_heads num_attention_heads") +
                                 "num_attention_heads n_head n_heads num_heads attention_heads",
                             family.sizes.heads, most_heads);
  for (std::size_t i = first; i < notes.size() && !reading.error; ++i) {
    if (notes[i].origin != Origin::family) continue;
    reading.warn("size_from_default", "the file does not say its " + notes[i].field +
                                          "; the default of " + reading.family + ", " +
                                          notes[i].value + ", is used");
  }
  dims.kv_heads = kv_heads_of(config, family, notes, dims.heads);

  const Range head_range{.least = 1, .most = static_cast<double>(most_head_dim)};
  if (family.attention.mla.nope > 0) {
    const std::int64_t nope = config.size(notes, "qk_nope_head_dim", "qk_nope_head_dim",
                                          family.attention.mla.nope, most_head_dim);
    const std::int64_t rotated = latent_rotated(config, family, notes);
    if (rotated % 2 != 0) {
      config.reading.refuse(config.where("qk_rope_head_dim"),
                            "must be even: channels rotate in pairs", std::to_string(rotated),
                            "correct it");
    }
    dims.head_dim = nope + rotated;
    note(notes, "head_dim", std::to_string(dims.head_dim), Origin::derived,
         "qk_nope_head_dim + qk_rope_head_dim");
  } else if (const auto said = said_head_dim(config, family, dims)) {
    dims.head_dim = said->value;
    note(notes, "head_dim", std::to_string(said->value), Origin::file, said->key);
  } else if (family.sizes.head_dim > 0) {
    dims.head_dim = family.sizes.head_dim;
    note(notes, "head_dim", std::to_string(dims.head_dim), Origin::family,
         "default of " + reading.family);
  } else {
    const std::int64_t width =
        family.heads.width_key.empty()
            ? dims.width
            : config.size(
                  notes, family.heads.width_key, family.heads.width_key,
                  family.heads.width > 0 ? family.heads.width : family.heads.times * dims.width,
                  most_width);
    dims.head_dim = head_dim_of(config, notes, width, dims.heads);
  }
  const auto value_dim = config.integer(spellings(family, "v_head_dim"), head_range);
  dims.value_dim = value_dim ? value_dim->value : dims.head_dim;

  const auto context = said_context(config, family);
  dims.context = context ? context->value : family.context;
  if (context) {
    const bool inferred = context->key.starts_with("not in the file");  // params.json, by its base
    note(notes, "context", std::to_string(dims.context), inferred ? Origin::family : Origin::file,
         context->key);
  } else if (dims.context > 0) {
    note(notes, "context", std::to_string(dims.context), Origin::family,
         "default of " + reading.family);
  }
  return dims;
}

LayerGroup uniform_group(Stack stack, const ModelDims& dims, bool causal, ProvenanceList notes) {
  LayerGroup group;
  group.stack = stack;
  group.layers = all_layers(dims.layers);
  group.geometry = dims.geometry();
  group.causal = causal;
  group.provenance = std::move(notes);
  set_cache(group, dims);
  return group;
}

void add_group(Reading& reading, LayerGroup group, std::int64_t context) {
  if (reading.error) return;
  Model& model = reading.model;
  if (model.context == 0) model.context = model.trained_context = context;
  model.groups.push_back(std::move(group));
}

void set_mixer(Mixer mixer, std::string label, LayerGroup& group) {
  constexpr std::string_view kept[] = {"", "a state of fixed size", "the last few tokens",
                                       "nothing", "nothing for each token"};
  group.mixer = mixer;
  group.label = std::move(label);
  group.schemes = {NoPe{}};
  group.window.reset();
  group.cache_note = "no attention: " + std::string(kept[static_cast<std::size_t>(mixer)]) +
                     (mixer == Mixer::unsaid        ? ""
                      : mixer == Mixer::convolution ? " are kept"
                                                    : " is kept");
}

void set_cache(LayerGroup& group, const ModelDims& dims) {
  if (!group.causal) {
    group.cache_note = "bidirectional: nothing is cached";
    return;
  }
  const std::int64_t value_dim = dims.value_dim > 0 ? dims.value_dim : dims.head_dim;
  const std::string heads =
      std::to_string(dims.kv_heads) + (dims.kv_heads == 1 ? " kv head" : " kv heads");
  group.cache_elements = dims.kv_heads * (dims.head_dim + value_dim);
  group.cache_note = value_dim == dims.head_dim
                         ? "2 · " + heads + " · " + std::to_string(dims.head_dim)
                         : heads + " · (" + std::to_string(dims.head_dim) + " + " +
                               std::to_string(value_dim) + ")";
}

}  // namespace posenc::detail
