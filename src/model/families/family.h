// What is known of a family of models beyond its file: Hugging Face's modeling code decides the
// pairing, the layers' pattern and what a missing key means, and no config.json says it. It stands
// in a row for each family (families/rows_*.cc). Readers ask the row and never the family's name
// (cmake/check_family_names.sh), so a row can be read alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/model/families/reading.h"

namespace posenc::detail {

struct Family;
struct LayerDraft;

// --- what a row can name -------------------------------------------------------------------------
// A convention that no field can say is a function of one of these kinds: shared ones are declared
// in layer_rules.h and logit_rules.h, those of a single family stand beside its row.

// Reads a whole file: adds groups of layers to config.reading.model.
using Reader = void(const Section& config, const Family& family);

// Decides a property of each layer: its kind of attention, or whether it rotates.
using LayerRule = void(LayerDraft& layers);

// What stands in place of a rotation: a group's schemes, its window and sizes being known.
using SchemeRule = void(const Section& config, LayerGroup& group);

// Sets the scale of a group's logits where it is not 1/√head_dim.
using LogitRule = void(const Section& config, LayerGroup& group);

// The axis of each pair, from the sections.
using PairAxesRule = std::vector<std::int64_t>(const std::vector<std::int64_t>& sections);

// How full attention and the other kind of layer alternate where the file does not list its layers.
struct LayerPattern {
  LayerRule* mark = nullptr;  // null: all layers attend fully; a sliding_window is not read
  // without a window the marked layers attend fully; else it is missed
  bool window_optional = false;
};

// What sliding layers rotate by where the file has one set of rope parameters.
enum class LocalRope {
  same,
  unscaled,          // the scaling is for full attention only (OLMo 3)
  own_theta,         // also its own base (Gemma 3: rope_local_base_freq)
  own_theta_scaled,  // its own base, and the scaling of all (ModernBERT: local_rope_theta)
};

enum class Sinks { none, all, windowed };

// All spellings of the base, of the sliding layers' base, of the part of a head that rotates, of
// the window and of the pattern's period. A family's code reads some of them, as its row says; of
// others the reader warns.
constexpr std::string_view any_theta = "rope_theta rotary_emb_base rope_base global_rope_theta";
constexpr std::string_view any_local_theta = "rope_local_base_freq local_rope_theta";
constexpr std::string_view any_partial =
    "partial_rotary_factor rotary_pct rotary_percentage rotary_emb_fraction rope_pct";
constexpr std::string_view mixture_keys = "fope_init_factor fope_sep_head num_inv_freq";
constexpr std::string_view any_window =
    "sliding_window attention_chunk_size local_attention window_size";
constexpr std::string_view any_every =
    "sliding_window_pattern _sliding_window_pattern global_attn_every_n_layers "
    "full_attention_interval";

// Documented defaults of the configuration class; 0: the class has none that one could mean.
struct Sizes {
  std::int64_t width = 0, layers = 0, heads = 0;
  std::int64_t kv_heads = 0;       // 0: as many as heads
  std::int64_t head_dim = 0;       // 0: width / heads
  std::int64_t single_layers = 0;  // of a diffusion transformer, behind its layers
};

// Multi-head latent attention: a head is `nope` channels without position, then `rope` rotated
// ones; the cache holds `rank` compressed numbers and one rotated key for all heads.
struct Mla {
  std::int64_t nope = 0, rope = 0, rank = 0;
};

// What picks the keys that a query sees (DeepSeek's sparse attention).
constexpr std::int64_t no_default = -1;
struct FamilyIndexer {
  std::int64_t most = 0;   // default of index_topk: tokens, or blocks; 0: the family has no indexer
  std::int64_t width = 0;  // default of index_head_dim, whose keys are cached
  std::int64_t heads = 0;  // default of index_n_heads
  std::string_view most_keys = "index_topk", width_keys = "index_head_dim", block_keys = {};
  std::string_view heads_keys = "index_n_heads";
  std::int64_t block = 1;       // default of the tokens that are picked together
  std::int64_t local = 0;       // default of index_local_blocks, which are always picked
  bool most_in_tokens = false;  // most counts tokens where blocks are picked
  bool caches_gates = false;    // a gate for each channel and a flag beside the key (GLM-5 Next)
  std::string_view kind = {};   // of the layers that have it; "": all that attend
  // which of its channels rotate, as many as of a head, and in which pairs; nullopt: as a head's
  SliceEnd slice = SliceEnd::leading;
  std::optional<Pairing> pairing = {};
  bool learned_temperature = false;  // of its own (Mistral Large 4)
  LayerRule* rule = nullptr;         // which layers pick for themselves; null: all
};

// Where biases of a page's axes meet the logits: with the product, before the scale (LayoutLM v3),
// or after it.
enum class PageBias { none, with_the_product, after_the_scale };

Reader read_decoder;  // rotary models: decoder.cc

// --- a row ---------------------------------------------------------------------------------------
// Every field has a default, so that a row says what is special. A number is the default of the
// configuration class for the key of that name; a file that has the key overrides it.

// How what rotates rotates.
struct FamilyRope {
  Pairing pairing = Pairing::halves;
  // true: neighbours pair, false: halves; "": no such key
  std::string_view pairing_key = {};
  // default of rope_theta; 0: none, or versions disagree
  double theta = 0;
  // the default before transformers theta_changed, where it was another
  double theta_before = 0;
  std::pair<int, int> theta_changed = {5, 0};
  // "rotary": {"base": 10000, "type": "origin"} of the model's own code (InternLM)
  bool rotary_object = false;
  // where the base stands beside the rope parameters
  std::string_view theta_keys = "rope_theta";
  // default of rope_parameters, as JSON; "": a plain rotation
  std::string_view parameters = {};
  // spellings of rope_parameters that the code ignores
  std::string_view unread_parameters = {};
  // they have an entry for each type of layer (else as `local` or the default say)
  bool by_layer_type = false;
  // default of original_max_position_embeddings beside them
  std::int64_t original = 0;
  // keys of a rotation that the code published with the weights reads, and transformers' class for
  // it does not
  std::string_view own_code = {};
  // key of the factor by which the code published with the weights grows the base (dynamic NTK)
  // past max_trained_positions, and transformers' class does not
  std::string_view stretch = {};
  // its own key for a factor of the base
  std::string_view ratio_key = {};
  // its own word of YaRN multiplies cos and sin by 0.07 ln s + 1 (TeleChat 3)
  bool flatter_yarn = false;
  // dynamic with alpha is NTK-aware (HunYuan)
  bool alpha = false;
  // ntk also divides every frequency by s^(2/d), over the base b·s (GTE)
  bool ntk_divides = false;
  // rotates the other way (nanochat)
  bool reversed = false;
  // values are rotated too, and the output not back (CLVP)
  bool values_stay = false;
  // true: the same (RoFormer)
  std::string_view values_key = {};
  // rotary_emb.alpha among the weights
  bool learned_factors = false;
  // FoPE where the rope parameters have one of mixture_keys
  bool mixes = false;
  // LongRoPE's long factors are never taken (PhiMoE)
  bool short_factors = false;
  // its authors publish low_freq_factor as large as high_freq_factor: a step (Llama 4)
  bool steps = false;
};

// Which channels of a head, and which heads, rotate.
struct FamilySlice {
  // default of partial_rotary_factor
  double partial = 1;
  // where it stands; "": whole heads rotate, said or not
  std::string_view partial_keys = {};
  // vLLM reads these keys, Hugging Face's code rotates whole heads
  bool partial_disputed = false;
  // default of rotary_dim; 0: partial says it
  std::int64_t rotary_dim = 0;
  // the key rotary_dim
  bool reads_rotary_dim = false;
  // half of a head rotates, and no key says otherwise (ChatGLM)
  bool rotary_half = false;
  // of every layer, the first ones; 0: all
  std::int64_t rotated_heads = 0;
};

// Positions of several axes.
struct FamilyAxes {
  // default of mrope_section
  std::string_view sections = {};
  // always, whatever the file says
  bool interleaved = false;
  // transformers deals channels, others pairs (HunYuan VL)
  bool disputed = false;
  // deals pairs to axes where sections do not say it
  PairAxesRule* of_pairs = nullptr;
  // as many axes take pairs in turns, which no key says (NeoMME)
  std::int64_t alternating = 0;
};

// The axes of a diffusion transformer.
struct FamilyPicture {
  // where the channels of each axis stand
  std::string_view keys = {};
  // their default; "": as eighths or each_keys say, else a third of the head each, time takes the
  // rest
  std::string_view dims = {};
  // eighths of a head for each axis, which no key says
  std::string_view eighths = {};
  // where one number of pairs stands that each of three axes has, and its default
  std::string_view each_keys = {};
  std::int64_t each = 0;
  // pairs are halves of the head
  bool halves = false;
  // cos and sin are laid out for the other pairing
  bool tiled = false;
  // where numbers stand that divide the positions of each axis, and their default
  std::string_view divisor_keys = {}, divisors = {};
  // where numbers s stand that grow each axis' base by s^(D/(D − 2)), and their default
  std::string_view stretch_keys = {}, stretch = {};
  // axes rotate only where this key is true
  std::string_view only_with = {};
  // channels of the latents by which a model is told whose VAE shrinks more; 0: none is known
  std::int64_t latents = 0;
};

// Layers that are not alike.
struct FamilyLayers {
  // the class has layer_types, so parameters may be given by layer type
  bool types = false;
  LayerPattern pattern = {};
  // the pattern's period, or its layer
  std::int64_t every = 0;
  // where the period stands; "": nowhere
  std::string_view every_keys = {};
  // the kind of layer between the full ones
  std::string_view other = "sliding_attention";
  // kinds set by the code against the file
  LayerRule* forced = nullptr;
  // which layers rotate; null: all
  LayerRule* rotates = nullptr;
  // which layers run several times; null: none
  LayerRule* passes = nullptr;
};

// The window of layers that slide.
struct FamilyWindow {
  // default of sliding_window
  std::int64_t size = 0;
  std::string_view keys = "sliding_window";
  // a key of tokens before the query, which wins (MiMo-V2)
  std::string_view before = {};
  // nothing slides unless use_sliding_window is true
  bool needs_switch = false;
  // a decoder that has half of local_attention
  bool half = false;
  // an encoder whose window is said for one side, not for both
  bool each_side = false;
  // an encoder whose window counts the query too (T5Gemma 2)
  bool with_itself = false;
  // seeing both ways, it is a token wider on each side (Gemma 4)
  bool grows = false;
};

// What layers that slide rotate by.
struct FamilyLocal {
  LocalRope rope = LocalRope::same;
  // default of their base, where they have their own
  double theta = 0;
  // where it stands; "": nowhere
  std::string_view theta_keys = {};
  // the key of their rotary_dim; "": as all
  std::string_view rotary_dim = {};
};

struct FamilyHeads {
  // default of global_head_dim; 0: all layers have one head_dim
  std::int64_t full_dim = 0;
  // default of num_kv_shared_layers
  std::int64_t shared_kv = 0;
  // heads share the width, whatever head_dim says
  bool share_width = false;
  // key of the width that heads share, where it is not the model's, and its default (MobileBERT);
  // without one it is the model's `times` (Zamba)
  std::string_view width_key = {};
  std::int64_t width = 0;
  std::int64_t times = 1;
  // key of how many query heads share a key (PLaMo)
  std::string_view sharers = {};
  // keys of lists with a number for each layer, where layers have unlike heads; "": they have not
  std::string_view of_layers = {};
  std::string_view kv_of_layers = {};
  // where the key-value heads of layers that slide stand, and their default; "": as all
  std::string_view local_kv_key = {};
  std::int64_t local_kv = 0;
  // multi_query_attention with groups of heads, which a key counts
  bool count_groups = false;
  // of latent heads, head_dim is the rotated width and wins (GLM-4.7)
  bool dim_rotates = false;
};

struct FamilyAttention {
  // nope > 0: multi-head latent attention
  Mla mla = {};
  // most > 0: a query sees what it picks
  FamilyIndexer indexer = {};
  // null: a rotation, or none
  SchemeRule* schemes = nullptr;
  // null: 1/√head_dim
  LogitRule* logits = nullptr;
  // which layers learn a sink's logit for each head
  Sinks sinks = Sinks::none;
  // which are rotated too, and the output back (DeepSeek-V4)
  bool keys_are_values = false;
  // YaRN's mscale_all_dim² on the logits (DeepSeek)
  bool scale_logits = false;
};

// Vectors added to the embedding.
struct FamilyAdded {
  // position p reads row p + offset of a table
  std::int64_t row_offset = 0;
  // the offset's rows come on top of max_position_embeddings (OPT)
  bool rows_beyond = false;
  // key of a table narrower than the model: embedding_size
  std::string_view table_width = {};
  // of readers that add sinusoids
  Sinusoidal waves = {};
  // of pictures: places are shares of rows and columns, times 2π
  bool shares = false;
  // default of scale_embedding
  bool scale_embedding = false;
  // the key is kept and never used (MusicGen)
  bool scale_unread = false;
};

// Biases of the distance.
struct FamilyBias {
  // defaults of left_ and right_max_position_embeddings, to which distances are clipped
  std::int64_t clipped_left = 0, clipped_right = 0;
  // of the text's order and of two axes of a page
  PageBias page = PageBias::none;
  // each layer has a table of its own, not each stack (UMT5)
  bool table_each_layer = false;
};

struct Family {
  // model_type, separated by spaces
  std::string_view types = {};
  Reader* read = read_decoder;
  // default of max_position_embeddings
  std::int64_t context = 0;
  Sizes sizes = {};
  // keys that spell a size elsewhere, and another thing here
  std::string_view other_keys = {};
  // sizes are spelled with it in front: encoder_layers, decoder_layers
  std::string_view side = {};
  bool causal = true;
  // the key use_bidirectional_attention
  bool reads_bidirectional = false;
  // its code stands beside the weights (auto_map), and not in transformers
  bool own_code = false;
  // none of its published files names code beside the weights
  bool plain_files = false;
  FamilyRope rope = {};
  FamilySlice slice = {};
  FamilyAxes axes = {};
  FamilyPicture picture = {};
  FamilyLayers layers = {};
  FamilyWindow window = {};
  FamilyLocal local = {};
  FamilyHeads heads = {};
  FamilyAttention attention = {};
  FamilyAdded added = {};
  FamilyBias bias = {};
  // a warning that every file of the family deserves; of one that is not covered: why
  std::string_view remark = {};
};

const Family* find_family(std::string_view model_type);  // null: not known
// The known model_type that a name has in another spelling ("GPTNeoX" of a class: "gpt_neox"): case
// and underscores aside; "": none.
std::string_view type_spelled_as(std::string_view name);

// The family of a class whose files give the model_type of another one: Grok's say "git".
std::string_view type_of_misnamed(std::string_view class_name);  // "": it is as the file says
// Of a class without its ending ("StableLMEpoch") the type, where that is not its name in small
// letters; else "".
std::string_view type_named_otherwise(std::string_view class_name);

// What an unknown family is read as: by Hugging Face's generic rule, or by what its file says
// outright of its positions.
const Family& unknown_family();
const Family& unknown_family_with_alibi();
const Family& unknown_family_with_table();
const Family& unknown_family_with_axes();

// How transformers of pictures spell the channels of each axis.
constexpr std::string_view axes_of_pictures =
    "axes_dims axes_dim axes_dim_rope axes_dims_rope rope_axes_dim axis_dims rope_dim_list";

// Whole numbers of a row: "2 2 6 2".
std::vector<std::int64_t> numbers_in(std::string_view words);

// model_type of the text part, where the model around it is of another type and the part does not
// say.
std::string_view inner_type(std::string_view outer);

// What a decoder's causal mask leaves out where pictures stand among text (Mask::blocks).
inline constexpr std::string_view picture_blocks =
    "tokens of a picture see each other both ways, in every layer; text is causal";

// What a model around a text model changes in it: a warning that its every file deserves.
std::string_view outer_remark(std::string_view outer);

// --- readers, each in its own file ---------------------------------------------------------------

Reader read_dbrx;  // decoder.cc
Reader read_deepseek_v4;
Reader read_learned;  // vectors added to the embedding: absolute.cc
Reader read_spectrogram;
Reader read_longformer;
Reader read_gpt2;
Reader read_waves;
Reader read_waves_if_said;
Reader read_gpt_neo;
Reader read_mpnet;
Reader read_esm;
Reader read_bloom;  // biases on the logits: biased.cc
Reader read_mpt;
Reader read_falcon;
Reader read_baichuan;
Reader read_jais;
Reader read_deberta;
Reader read_page;  // LayoutLM's: absolute.cc
Reader read_t5;
Reader read_bart;  // encoder and decoder with added vectors: encoder_decoder.cc
Reader read_led;
Reader read_marian;
Reader read_m2m;
Reader read_whisper;
Reader read_vit;           // vision.cc
Reader read_vision_alone;  // of a file whose other parts are not covered
Reader read_detector;    // encoders of pictures' features that add sinusoids by axis: detectors.cc
Reader read_prompts;     // what SAM makes of clicks, and where it is added: detectors.cc
Reader read_resampler;   // learned queries that attend to a picture's features: resamplers.cc
Reader read_sides;       // encoder and decoder of one build: parts.cc
Reader read_parts;       // encoder and decoder with files of their own within the file
Reader read_diffusion;   // diffusion.cc
Reader read_recurrence;  // no layer attends: without_attention.cc
Reader read_convolutions;
Reader read_perceptrons;
Reader read_not_covered;  // known, and known not to be covered: families.cc

// Towers beside a text model; a tower whose rule is not known becomes a warning.
void read_tower(const Section& vision, std::string_view outer_type);  // vision.cc
void read_audio(const Section& audio);                                // parts.cc

// --- what readers share: shape.cc ----------------------------------------------------------------

// Sizes of a stack of layers, in the terms of posenc::Geometry; 0: not known.
struct ModelDims {
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t context = 0;  // 0: the file does not say and the family has no default
  Geometry geometry() const;
};

ModelDims read_dims(const Section& config, const Family& family, ProvenanceList& notes);
std::vector<std::int64_t> all_layers(std::int64_t count);
// The rotated channels of latent attention; 0: it has no position.
std::int64_t latent_rotated(const Section& config, const Family& family, ProvenanceList& notes);
std::int64_t head_dim_of(const Section& config, ProvenanceList& notes, std::int64_t width,
                         std::int64_t heads);
void set_cache(LayerGroup& group,
               const ModelDims& dims);  // 2 · kv heads · head_dim, or why it is 0

// What a group without attention has: a label, no scheme, and a note of what it keeps.
void set_mixer(Mixer mixer, std::string label, LayerGroup& group);

// A group of all layers with one set of sizes; causal groups get their cache.
LayerGroup uniform_group(Stack stack, const ModelDims& dims, bool causal, ProvenanceList notes);

// Adds the group and, from the first one, the model's context.
void add_group(Reading& reading, LayerGroup group, std::int64_t context);

// --- what dialects share: config.cc --------------------------------------------------------------

Section text_part(const Section& whole);  // the text model among towers; the whole, where it is all
std::string generic_rule(const Model& model);  // "assumes ...", of what the generic rule has read
void mark_assumed(Model& model);     // what the generic rule took for granted, as provenance
void compile_all(Reading& reading);  // refuses a model whose numbers contradict each other
std::string stem(std::string_view name, std::string_view extension);  // of a path, without both

}  // namespace posenc::detail
