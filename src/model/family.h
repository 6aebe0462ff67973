// What is known of a family of models beyond its file: Hugging Face's modeling code decides the
// pairing, the layers' pattern and what a missing key means, and none of that is written in a
// config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/reading.h"

namespace posenc::detail {

struct Family;
using Reader = void(const Section& config,
                    const Family& family);  // adds groups to config.reading.model

// How full attention and the other kind of layer alternate where the file has no layer_types.
enum class Alternate {
  no,           // all layers attend fully; a sliding_window in the file is not read
  all_slide,    // a sliding_window, if any, holds for all layers (Mistral)
  every_last,   // layer i attends fully if (i + 1) % every == 0
  every_first,  // layer i attends fully if i % every == 0
  past_layer,   // Qwen: the window holds from max_window_layers on, if use_sliding_window
  at_offset,    // Jamba: i % attn_layer_period == attn_layer_offset
};

enum class NoPeLayers {
  none,
  listed,  // no_rope_layers, or each no_rope_layer_interval-th (Llama 4, SmolLM3)
  full,    // the layers with full attention, where others slide (Cohere 2, EXAONE 4)
  all,
};

// What sliding layers rotate by where the file has one set of rope parameters.
enum class LocalRope {
  same,
  unscaled,   // the scaling is for full attention only (OLMo 3)
  own_theta,  // also its own base (Gemma 3: rope_local_base_freq; ModernBERT: local_rope_theta)
};

enum class LogitScale {
  usual,                 // 1/√head_dim
  query_pre_attn,        // 1/√query_pre_attn_scalar (Gemma 2, 3)
  attention_multiplier,  // the file's number (Granite)
  one,                   // q·k as it is (T5, GPT-Neo, Gemma 4)
};

// Documented defaults of the configuration class; 0: the class has none that one could mean.
struct Sizes {
  std::int64_t width = 0, layers = 0, heads = 0;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: width / heads
};

// Multi-head latent attention: a head is `nope` channels without position, `rope` rotated.
struct Latent {
  std::int64_t nope = 0, rope = 0, rank = 0;
};

Reader read_decoder;  // rotary models: decoder.cc
Reader read_dbrx;

struct Family {
  std::string_view types;  // model_type, separated by spaces
  Reader* read = read_decoder;
  Pairing pairing = Pairing::halves;
  double theta = 0;          // default of rope_theta; 0: none, or versions disagree
  double local_theta = 0;    // of LocalRope::own_theta
  std::int64_t context = 0;  // default of max_position_embeddings
  Sizes sizes = {};
  double partial = 1;       // default of partial_rotary_factor
  std::int64_t window = 0;  // default of sliding_window
  Alternate alternate = Alternate::no;
  std::int64_t every = 0;
  std::string_view other = "sliding_attention";  // the kind of layer between the full ones
  NoPeLayers nope = NoPeLayers::none;
  LocalRope local = LocalRope::same;
  LogitScale scale = LogitScale::usual;
  Latent latent = {};         // nope > 0: multi-head latent attention
  bool scale_logits = false;  // YaRN's mscale_all_dim² on the logits (DeepSeek)
  bool alpha = false;         // dynamic with alpha is NTK-aware (HunYuan)
  bool causal = true;
  std::string_view sections = {};     // default of mrope_section
  bool sections_interleaved = false;  // always, whatever the file says
  std::int64_t row_offset = 0;        // position p reads row p + offset of a table
  bool rows_beyond = false;      // the offset's rows come on top of max_position_embeddings (OPT)
  bool scale_embedding = false;  // default of scale_embedding
  std::string_view table_width = {};  // key of a table narrower than the model: embedding_size
  std::string_view remark = {};       // a warning every file of the family deserves
};

const Family* find_family(std::string_view model_type);  // null: not known
const Family& unknown_family();                          // Hugging Face's generic rule

// model_type of the text part, where the model around it is of another type and the part does not
// say.
std::string_view inner_type(std::string_view outer);

// Readers, each in its own file.
Reader read_learned;  // vectors added to the embedding: absolute.cc
Reader read_waves;
Reader read_gpt_neo;
Reader read_mpnet;
Reader read_esm;
Reader read_bloom;  // biases on the logits: biased.cc
Reader read_mpt;
Reader read_falcon;
Reader read_baichuan;
Reader read_jais;
Reader read_deberta;
Reader read_t5;
Reader read_bart;  // encoder and decoder with added vectors: pair.cc
Reader read_marian;
Reader read_m2m;
Reader read_whisper;
Reader read_vit;           // towers.cc
Reader read_no_attention;  // known, and known not to be covered: families.cc
Reader read_not_covered;

// Vision towers beside a text model; a tower whose rule is not known becomes a warning. towers.cc
void read_tower(const Section& vision, std::string_view outer_type);

// --- what readers share: shape.cc ----------------------------------------------------------------

struct Shape {
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t context = 0;  // 0: the file does not say and the family has no default
  Geometry geometry() const;
};

Shape read_shape(const Section& config, const Family& family, Notes& notes);
std::vector<std::int64_t> all_layers(std::int64_t count);
std::int64_t head_dim_of(const Section& config, Notes& notes, std::int64_t width,
                         std::int64_t heads);
void set_cache(LayerGroup& group, const Shape& shape);  // 2 · kv heads · head_dim, or why it is 0

// A group of all layers with one shape; causal groups get their cache.
LayerGroup uniform_group(Stack stack, const Shape& shape, bool causal, Notes notes);

// Adds the group and, from the first one, the model's context.
void add_group(Reading& reading, LayerGroup group, std::int64_t context);

// --- what dialects share: config.cc ---------------------------------------------------------------

void mark_assumed(Model& model);     // what the generic rule took for granted, as provenance
void compile_all(Reading& reading);  // refuses a model whose numbers contradict each other
std::string stem(std::string_view name, std::string_view extension);  // of a path, without both

}  // namespace posenc::detail
