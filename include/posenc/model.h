// What a real model's files say about position: schemes layer by layer, with where each value came
// from. read_model() never guesses: a value is in the file, follows from a named rule, is a
// documented default of the family, or the model is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/schemes.h"

namespace [[gnu::visibility("default")]] posenc {

enum class Stack { text, encoder, decoder, vision, audio };
std::string_view name(Stack stack);
bool is_tower(Stack stack);  // of pictures or sound: its positions are not those of the text

// Where a value came from.
enum class Origin {
  file,     // the file states it
  derived,  // follows from other values by the named rule
  family,   // documented default of the family
  assumed,  // the generic rule for families we do not know; always with a warning
};
std::string_view name(Origin origin);

// What mixes the tokens of a layer. Only attention has positions of its own: the others ignore
// schemes, window and the scale of logits.
enum class Mixer {
  attention,
  recurrence,   // a state of fixed size carries the order (Mamba, linear attention, RG-LRU)
  convolution,  // over the last few tokens, whose order it knows
  none,         // a perceptron or experts: each token by itself
  unsaid,       // none of them is attention, and the file does not say which it is
};
std::string_view name(Mixer mixer);

// What an indexer lets a query see: at most `count` blocks of `block` keys, of which the last
// `local` always.
struct Picked {
  std::int64_t count = 0, block = 1, local = 0;
  bool operator==(const Picked&) const = default;
};

// What a layer caches of the whole text beside its keys and values: `elements` numbers for every
// `every` tokens.
struct CachePart {
  std::int64_t elements = 0, every = 1;
  std::string note = {};  // "keys of the indexer"
  bool operator==(const CachePart&) const = default;
};

// What picks the keys that a query sees (DeepSeek's lightning indexer, 2512.02556): queries of its
// own meet one key a token, and what they score ranks keys and weighs no value. Its frequencies are
// the group's; which channels of its heads rotate, and in which pairs, is its own.
struct Indexer {
  std::int64_t heads = 0, head_dim = 0;  // of its queries; heads 0: the file does not say
  std::int64_t rotary_dim = 0;           // channels that rotate; 0: none
  Pairing pairing = Pairing::halves;
  SliceEnd slice = SliceEnd::leading;
  Logits logits = {};   // of its scores; the multiplier scales all alike and picks no other key
  CachePart keys = {};  // what it caches, one of the group's cache_beside
  bool operator==(const Indexer&) const = default;
};

// One value of a group, and where it came from.
struct Provenance {
  std::string field = {};  // "rope_theta", "head_dim", "pairing", "layer_types"
  std::string value = {};  // as text: "500000", "halves"
  Origin origin = Origin::file;
  std::string detail =
      {};  // key in the file ("text_config.rope_scaling.factor"), rule or family default
};

// code is stable ("factor_vs_lengths"), message names the values and the cure.
struct Warning {
  std::string code = {};
  std::string message = {};
  bool operator==(const Warning&) const = default;
};

// Layers that treat position alike.
struct LayerGroup {
  Stack stack = Stack::text;
  std::vector<std::int64_t> layers = {};  // ascending, from 0 in each stack
  std::string label = {};                 // "full attention", "sliding attention", "" if all alike
  Mixer mixer = Mixer::attention;
  Geometry geometry = {};                   // length 0
  std::optional<std::int64_t> window = {};  // of attention, in tokens
  bool chunked = false;  // the window does not slide: a token sees its own chunk (Mask::chunk)
  bool causal = true;
  std::optional<std::int64_t> behind =
      {};  // of a window that is not causal: its tokens before the query, where that is not half
  std::int64_t compressed =
      0;  // tokens that each key beyond the window summarizes (DeepSeek-V4); 0: there are none
  std::optional<Picked> picked = {};  // from the compressed keys, else from all
  // of layers that pick for themselves; where `picked` stands alone, a layer before has picked
  std::optional<Indexer> indexer = {};
  std::vector<Scheme> schemes = {};  // the main one first; several act at different places
  // what tells these layers the order of tokens beside the plan, where it reads the tokens and no
  // plan says it: "a convolution before the first layer, over 64 frames before each …"
  std::string carried = {};
  Logits logits = {};            // the attention's own scale, merged into the plan
  std::string logits_note = {};  // who asks for it: "query_pre_attn_scalar 144"
  bool sink_logits =
      false;  // each head has a learned one (AttentionInputs::sink_logits), among the weights
  bool learned_factors =
      // frequencies are multiplied by learned numbers: Rope::frequency_factors, where the weights
      // are there
      false;
  bool added_each_layer =
      false;  // to the input of the projections of queries and keys (DETR), not once to the embedding
  std::int64_t cache_elements = 0;  // numbers a token adds to the key-value cache, per layer
  std::string cache_note = {};      // "2 · 8 kv heads · 128", "compressed: 512 + 64 (MLA)"
  std::vector<CachePart> cache_beside = {};
  std::vector<Provenance> provenance = {};
};

enum class FileFormat { config, params, gguf, safetensors, safetensors_index };
std::string_view name(FileFormat format);  // "config.json", "params.json", "GGUF", "safetensors"

enum class FileRole {
  model,     // the model is what this file says
  compared,  // read too: what it says otherwise is the warning files_disagree
  weights,   // learned tables are taken from it, if the model has any
  unread,    // cannot be read, as the warning file_not_read tells
};
std::string_view name(FileRole role);

// A file that was looked at, and what it counted for.
struct ModelFile {
  std::string path = {};
  FileFormat format = FileFormat::config;
  FileRole role = FileRole::model;
  bool operator==(const ModelFile&) const = default;
};

// A model's layers, grouped by how they treat position.
struct Model {
  std::string name = {};    // of the file or folder, without its extension
  std::string family = {};  // model_type as the file spells it; "mistral" for a params.json
  bool known_family = true;
  // Its code stands beside its weights and not in transformers, so that engines have ports, or none.
  bool own_code = false;
  std::int64_t context = 0;          // max_position_embeddings and its kin, 0: not said
  std::int64_t trained_context = 0;  // before any scaling, = context where none
  std::string dtype = {};            // "bfloat16" as the file says, "" if it does not
  std::vector<LayerGroup> groups = {};
  std::vector<Warning> warnings = {};
  std::vector<ModelFile> files = {};  // what it was read from, the one that counts first
  std::string origin = {};            // of a bundled configuration: "published ...", "" of a user's
};

// A group's schemes and logits as one plan for a length (0: as constructed).
Expected<Plan> compile(const LayerGroup& group, std::int64_t length = 0,
                       Angles angles = Angles::exact);

// A group's indexer as a group of the same layers, whose schemes are its own: compile() makes its
// plan. nullopt: the group has none.
std::optional<LayerGroup> indexer_group(const LayerGroup& group);

// Bytes of a number in the model's dtype, 2 where the file does not say it.
std::int64_t bytes_of_number(const Model& model);

// Bytes that all layers of the group cache for a text of `tokens` tokens: those in its window, and
// cache_beside.
std::int64_t cached_bytes(const Model& model, const LayerGroup& group, std::int64_t tokens);

// The group that holds a layer of a stack; null if none does.
const LayerGroup* find_group(const Model& model, std::int64_t layer, Stack stack);

// Reads a file, a folder, or a bundled or published name; a file's content says what it is. In a
// folder, config.json describes the model, else params.json, else the first GGUF file; the others
// are compared with it (docs/files.md). Learned tables in the folder (model.safetensors, whole or
// in shards) are in the model's schemes, borrowed from the mapped file. Errors name key, value and
// cure.
Expected<Model> read_model(std::string_view path_or_name);

// The text of a config.json.
Expected<Model> read_config(std::string_view json_text, std::string_view name = "config.json");

// The bytes of a GGUF file, as a MappedFile has them. The reading follows llama.cpp: its pairing
// for each architecture, its defaults for keys that are not there.
Expected<Model> read_gguf(std::span<const std::byte> bytes, std::string_view name = "model.gguf");

// The text of Mistral's params.json. Pairs are neighbours there, where Hugging Face's file of the
// same model has halves: its weights have the rows of queries and keys in another order.
Expected<Model> read_params(std::string_view json_text, std::string_view name = "params.json");

// Any of the three, told apart by content: a GGUF file begins with its magic, and the two JSON
// files differ in their keys.
Expected<Model> read_model_bytes(std::span<const std::byte> bytes, std::string_view name = "model");

// Real configurations that travel with the library.
struct BundledModel {
  std::string_view name;
  std::string_view about;  // one line: why it is here
  // "published": the model's own file; "reconstructed": put together from what other programs say
  // of the model.
  std::string_view origin;
  std::string_view source;  // where the file was found, or what it was put together from
};
std::vector<BundledModel> bundled_models();
// What the config.json of well-known models says of position, by their names on the hub; none in
// WebAssembly. read_model() takes these names, too.
std::vector<BundledModel> published_models();
// By a name as people write it: case, owner and packing aside. Errors: neither bundled nor
// published.
Expected<std::string_view> bundled_config(std::string_view name);

}  // namespace posenc
