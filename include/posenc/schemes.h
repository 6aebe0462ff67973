// Every positional encoding, as a value. compile() turns one into a Plan. The mathematics of
// each is in src/schemes/<name>.cc; the list at the end is the only place that names them all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "posenc/distance_maps.h"
#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/plan.h"
#include "posenc/scalings.h"

namespace [[gnu::visibility("default")]] posenc {

// The model around a scheme. Zero means not known; a scheme that needs it says so.
struct Geometry {
  std::int64_t width = 0;     // channels of the embedding
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // key and value heads
  std::int64_t head_dim = 0;  // channels of a query or key head
  std::int64_t length = 0;    // largest position + 1 to compile for; 0: as the model is constructed
  std::int64_t grid_height = 0, grid_width = 0;  // patches of a picture
  bool operator==(const Geometry&) const = default;
};

struct NoPe {
  static constexpr std::string_view name = "nope", aliases = "none",
                                    title = "no positional encoding",
                                    formula = "nothing: only the causal mask tells order",
                                    paper = "2305.19466";
  static constexpr auto fields() { return std::tuple{}; }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const NoPe&) const = default;
};

struct Index {
  std::int64_t channel = -1;
  double scale = 1;

  static constexpr std::string_view name = "index", aliases = "ramp bare-index",
                                    title = "the bare position index as a feature",
                                    formula = "x[channel] += scale·p", paper = "";
  static constexpr auto fields() {
    return std::tuple{
        Field{"channel", &Index::channel, "reserved channel; -1: the last", row_index, "channel"},
        Field{"scale", &Index::scale, "value of one position"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Index&) const = default;
};

enum class WaveSpacing {
  width,  // base^(−2r/d): the last wavelength is 2π·base^((d−2)/d)
  ends,   // base^(−r/(d/2−1)): the last wavelength is 2π·base
};
enum class OddWidth {
  zero,  // ⌊d/2⌋ pairs, the last channel stays zero
  sine,  // one sine more than cosines
};

struct Sinusoidal {
  WaveLayout layout = WaveLayout::interleaved;
  WaveSpacing spacing = WaveSpacing::width;
  OddWidth odd = OddWidth::sine;
  double base = 10000;
  std::int64_t row_offset = 0;
  std::int64_t padding_idx = -1;
  bool scale_embedding = false;
  bool cosine_first = false;
  std::vector<std::int64_t> axes_dim = {};
  std::vector<std::int64_t> axis_order = {};
  std::vector<double> axis_base = {};
  std::vector<double> position_scale = {};
  bool divide_vectors = false;

  static constexpr std::string_view
      name = "sinusoidal",
      aliases = "sinusoid sincos timesteps", title = "sinusoidal vectors",
      formula =
          "sin(p·ω_r), cos(p·ω_r), interleaved or concatenated; ω_r = base^(−2r/d), or "
          "base^(−r/(d/2−1)) with spacing ends; with axes_dim the same of p_a in D_a channels",
      paper = "1706.03762";
  static constexpr auto fields() {
    return std::tuple{
        Field{"layout", &Sinusoidal::layout, "sin,cos,sin,cos... or all sines, then all cosines"},
        Field{"spacing", &Sinusoidal::spacing,
              "width: base^(−2r/d) as printed; ends: base^(−r/(d/2−1)) as tensor2tensor does"},
        Field{"odd", &Sinusoidal::odd, "the odd channel of an odd width: zero, or a sine alone"},
        Field{"base", &Sinusoidal::base, "b: longest wavelength over 2π, nearly", above_one, "",
              "max_timescale rope_theta theta"},
        Field{"row_offset", &Sinusoidal::row_offset, "position p has the vector of p + offset",
              any_number, "rows"},
        Field{"padding_idx", &Sinusoidal::padding_idx, "a row of zeros (fairseq); -1: none",
              row_index, "row"},
        Field{"scale_embedding", &Sinusoidal::scale_embedding,
              "token embeddings × √d before the sum"},
        Field{"cosine_first", &Sinusoidal::cosine_first,
              "a pair's cosine, or all cosines, before the sine (MusicGen, time steps)", any_number,
              "", "flip_sin_to_cos"},
        Field{"axes_dim", &Sinusoidal::axes_dim,
              "D_a, channels of each axis side by side (a picture: d/2, d/2); none: one axis",
              Range{.least = 2}, "channels"},
        Field{"axis_order", &Sinusoidal::axis_order,
              "the axis whose channels stand first, and so on (MAE: 1, 0); none: 0, 1, …",
              Range{.least = 0, .most = 7}},
        Field{"axis_base", &Sinusoidal::axis_base, "b_a, base of each axis; none: base", above_one},
        Field{"position_scale", &Sinusoidal::position_scale,
              "multiplies positions, a number for each axis or one for all (DETR: 2π, of shares "
              "of the picture); none: 1",
              any_number, "", "scale"},
        Field{"divide_vectors", &Sinusoidal::divide_vectors, "the vectors / √d (Canary)"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Sinusoidal&) const = default;
};

struct FourierFeatures {
  std::int64_t axes = 2;
  WaveLayout layout = WaveLayout::concatenated;
  bool cosine_first = false;
  double sigma = 1;
  Table frequencies = {};  // [axes][width/2], borrowed

  static constexpr std::string_view
      name = "fourier_features",
      aliases = "gaussian_fourier random_fourier", title = "random Fourier features",
      formula = "sin, cos of 2π·Σ_a p_a·B[a][r], p real, B drawn at random and kept",
      paper = "2006.10739";
  static constexpr auto fields() {
    return std::tuple{
        Field{"axes", &FourierFeatures::axes, "coordinates of a point",
              Range{.least = 1, .most = 8}},
        Field{"layout", &FourierFeatures::layout,
              "sin,cos,sin,cos... or all sines, then all cosines"},
        Field{"cosine_first", &FourierFeatures::cosine_first, "cosines before sines"},
        Field{"sigma", &FourierFeatures::sigma,
              "deviation of the B that is drawn where none is given", positive, "", "scale"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"frequencies", &FourierFeatures::frequencies,
                                 "B: [axes][width/2], turns for one unit of a coordinate"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const FourierFeatures&) const = default;
};

struct Learned {
  std::int64_t rows = 0;
  std::int64_t row_offset = 0;
  bool scale_embedding = false;
  std::vector<std::int64_t> axis_rows = {};
  Table table = {};  // [rows][width], borrowed

  static constexpr std::string_view name = "learned", aliases = "absolute learned-absolute",
                                    title = "learned absolute vectors",
                                    formula =
                                        "x + E[p + offset], or the sum of a row of each axis; a "
                                        "position without a row is an error",
                                    paper = "1705.03122";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rows", &Learned::rows, "rows of the table", at_least_one, "rows",
              "max_position_embeddings", true},
        Field{"row_offset", &Learned::row_offset,
              "position p reads row p + offset (OPT, RoBERTa: 2)", not_negative, "rows"},
        Field{"scale_embedding", &Learned::scale_embedding, "token embeddings × √d before the sum"},
        Field{"axis_rows", &Learned::axis_rows,
              "rows of each axis, one behind the other in the table; none: one axis", at_least_one,
              "rows"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Learned&) const = default;
};

enum class RowOrder { key_minus_query, query_minus_key };

struct Shaw {
  std::int64_t max_distance = 16;
  std::optional<std::int64_t> max_ahead = {};
  bool use_values = true;
  bool use_keys = false;
  bool zero_beyond = false;
  RowOrder row_order = RowOrder::key_minus_query;
  Table key = {}, value = {}, query = {};  // [k + 1 + ahead][head_dim], borrowed

  static constexpr std::string_view
      name = "shaw",
      aliases = "relative relative_key", title = "relative vectors (Shaw)",
      formula = "q_i·(k_j + a^K_c)/√d, out Σα(v_j + a^V_c), c = clip(j−i, −k, k) + k",
      paper = "1803.02155";
  static constexpr auto fields() {
    return std::tuple{
        Field{"max_distance", &Shaw::max_distance, "k: distances are clipped to it", not_negative,
              "tokens", "k max_relative_position left_max_position_embeddings"},
        Field{"max_ahead", &Shaw::max_ahead, "the same for keys ahead of the query; null: k",
              not_negative, "tokens", "right_max_position_embeddings"},
        Field{"use_values", &Shaw::use_values, "vectors on the values as well"},
        Field{"use_keys", &Shaw::use_keys, "also k_j·a_c (BERT's relative_key_query)"},
        Field{"zero_beyond", &Shaw::zero_beyond,
              "distances beyond have no vector, and are not clipped (VITS)"},
        Field{"row_order", &Shaw::row_order, "which way the table's rows run"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Shaw&) const = default;
};

struct T5 {
  std::int64_t num_buckets = 32, max_distance = 128;
  bool bidirectional = false;
  Table table = {};  // [num_buckets][heads], borrowed

  static constexpr std::string_view
      name = "t5",
      aliases = "t5-bucket t5_bias", title = "T5 bucketed bias",
      formula = "bucket = n below half, then half + ⌊ln(n/half)/ln(max/half)·(buckets−half)⌋",
      paper = "1910.10683";
  static constexpr auto fields() {
    return std::tuple{
        Field{"num_buckets", &T5::num_buckets, "rows of the table",
              Range{.least = 2, .most = 65536}, "buckets", "relative_attention_num_buckets"},
        Field{"max_distance", &T5::max_distance, "distances from here on share the last bucket",
              Range{.least = 2, .most = 1 << 20}, "tokens", "relative_attention_max_distance"},
        Field{"bidirectional", &T5::bidirectional, "half of the buckets for keys in the future"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const T5&) const = default;
};

enum class ProfileCurves {
  distances,  // a row for each distance from 0 to extent − 1; others add nothing
  buckets,    // T5's buckets
  ramp,       // −(i − j)
};

struct Profiles {
  ProfileCurves curves = ProfileCurves::distances;
  bool of_keys = false;
  std::int64_t profiles = 16;
  std::int64_t extent = 1024;
  std::int64_t num_buckets = 320, max_distance = 800;
  bool bidirectional = true;
  // Borrowed: of distances [profiles][extent], of buckets [num_buckets][heads · profiles], the profiles of a head together.
  Table table = {};

  static constexpr std::string_view
      name = "profiles",
      aliases = "rel_logits gated_buckets", title = "profiles of the distance",
      formula =
          "Σ_u r_iu·P_u[i−j], r of the query's tokens (Inkling), or s_ju of the key's; after 1/√d",
      paper = "2110.13900";
  static constexpr auto fields() {
    return std::tuple{
        Field{"curves", &Profiles::curves,
              "distances: 0 to extent − 1 (Inkling); buckets: T5's (WavLM); ramp: "
              "−distance (GRAPE-A)"},
        Field{"of_keys", &Profiles::of_keys, "made of the key's token, not of the query's"},
        Field{"profiles", &Profiles::profiles, "u: numbers of a token and head",
              Range{.least = 1, .most = 65536}, "", "d_rel"},
        Field{"extent", &Profiles::extent, "distances from here on add nothing",
              Range{.least = 1, .most = 1 << 20}, "tokens", "rel_extent"},
        Field{"num_buckets", &Profiles::num_buckets, "of buckets: rows of the table",
              Range{.least = 2, .most = 65536}, "buckets"},
        Field{"max_distance", &Profiles::max_distance,
              "of buckets: distances from here on share the last",
              Range{.least = 2, .most = 1 << 20}, "tokens", "max_bucket_distance"},
        Field{"bidirectional", &Profiles::bidirectional,
              "of buckets: half of them for keys in the future"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"table", &Profiles::table,
                   "P: [profiles][extent], of buckets [num_buckets][heads · profiles]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // buckets need heads, a ramp length
  bool operator==(const Profiles&) const = default;
};

struct TransformerXl {
  WaveLayout layout = WaveLayout::concatenated;
  double base = 10000;
  bool bidirectional = true;
  bool biases = true;
  // Borrowed: W_R [heads · head_dim][width] as a linear layer has it, u and v [heads][head_dim].
  Table projection = {}, content_bias = {}, position_bias = {};

  static constexpr std::string_view
      name = "transformer_xl",
      aliases = "xl rel_pos", title = "projected sinusoids of the distance (Transformer-XL)",
      formula = "[(q_i + u)·k_j + (q_i + v)·W_R s(i−j)]/√d, s a sinusoid of the model's width",
      paper = "1901.02860";
  static constexpr auto fields() {
    return std::tuple{
        Field{"layout", &TransformerXl::layout,
              "sin,cos,sin,cos... (Conformers) or all sines, then all cosines (XLNet)"},
        Field{"base", &TransformerXl::base, "base of the sinusoid", above_one},
        Field{"bidirectional", &TransformerXl::bidirectional, "keys ahead of the query too"},
        Field{"biases", &TransformerXl::biases, "learned u and v of each head beside the query"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"projection", &TransformerXl::projection,
                   "W_R: [heads · head_dim][width], as a linear layer has it"},
        TableField{"content_bias", &TransformerXl::content_bias, "u: [heads][head_dim]"},
        TableField{"position_bias", &TransformerXl::position_bias, "v: [heads][head_dim]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width, heads, head_dim, length
  bool operator==(const TransformerXl&) const = default;
};

struct Deberta {
  std::int64_t position_buckets = 256, max_relative_positions = 512;
  bool c2p = true, p2c = true;
  Table key = {}, query = {};  // [heads][rows][head_dim], borrowed: projected relative embeddings

  static constexpr std::string_view
      name = "deberta",
      aliases = "disentangled", title = "DeBERTa's disentangled attention",
      formula = "q_i·K_δ(i−j) + k_j·Q_δ(i−j), δ = sign·log bucket of the distance, all /√(3d)",
      paper = "2006.03654";
  static constexpr auto fields() {
    return std::tuple{Field{"position_buckets", &Deberta::position_buckets,
                            "rows on each side; -1: no logarithm, every distance its own row",
                            Range{.least = -1, .most = 65536}, "buckets", "num_buckets"},
                      Field{"max_relative_positions", &Deberta::max_relative_positions,
                            "distance that the last bucket stands for",
                            Range{.least = 2, .most = 1 << 20}, "tokens", "max_distance"},
                      Field{"c2p", &Deberta::c2p, "content to position: q_i·K"},
                      Field{"p2c", &Deberta::p2c, "position to content: k_j·Q"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Deberta&) const = default;
};

struct ClippedBias {
  std::int64_t left = 1000, right = 999;
  RowOrder row_order = RowOrder::key_minus_query;
  Table table = {};  // [left + 1 + right][heads], borrowed

  static constexpr std::string_view name = "clipped_bias", aliases = "clipped",
                                    title = "a learned bias of the clipped distance",
                                    formula = "b_h[clip(j−i, −left, right) + left]",
                                    paper = "2503.01743";
  static constexpr auto fields() {
    return std::tuple{
        Field{"left", &ClippedBias::left, "keys further behind share a row", not_negative,
              "tokens"},
        Field{"right", &ClippedBias::right, "keys further ahead share a row", not_negative,
              "tokens"},
        Field{"row_order", &ClippedBias::row_order, "which way the table's rows run"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &ClippedBias::table, "b: [left + 1 + right][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const ClippedBias&) const = default;
};

enum class SlopeRounding { exact, bfloat16 };

struct Alibi {
  double alibi_bias_max = 8;
  bool symmetric = false;
  SlopeRounding rounding = SlopeRounding::exact;
  bool before_scale = false;

  static constexpr std::string_view
      name = "alibi",
      aliases = "", title = "attention with linear biases (ALiBi)",
      formula =
          "−m_h·(i−j), m_h = 2^(−8h/H); H not a power of two: every other slope of 2P follows",
      paper = "2108.12409";
  static constexpr auto fields() {
    return std::tuple{
        Field{"alibi_bias_max", &Alibi::alibi_bias_max, "the last slope is 2^−max", positive, "",
              "max_bias max_alibi_bias bias_max"},
        Field{"symmetric", &Alibi::symmetric, "−m·|i−j|, for encoders", any_number, "",
              "bidirectional"},
        Field{"rounding", &Alibi::rounding, "slopes rounded as Falcon keeps them"},
        Field{"before_scale", &Alibi::before_scale, "added before 1/√d instead of after (Falcon)"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const Alibi&) const = default;
};

enum class KerpleKernel { log, power };

struct Kerple {
  KerpleKernel kernel = KerpleKernel::log;
  std::vector<double> p = {1}, a = {1};

  static constexpr std::string_view name = "kerple", aliases = "",
                                    title = "KERPLE: kernelised distances",
                                    formula = "log: −p·ln(1 + a·|i−j|);  power: −a·|i−j|^p",
                                    paper = "2205.09921";
  static constexpr auto fields() {
    return std::tuple{
        Field{"kernel", &Kerple::kernel, "log or power", any_number, "", "kind"},
        Field{"p", &Kerple::p, "one for each head, or one for all (power: at most 2)", positive},
        Field{"a", &Kerple::a, "one for each head, or one for all", positive}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, length
  bool operator==(const Kerple&) const = default;
};

struct Sandwich {
  std::int64_t dim = 128;
  double base = 10000;

  static constexpr std::string_view name = "sandwich", aliases = "",
                                    title = "Sandwich: the sinusoids' inner product as a bias",
                                    formula = "(Σ_{r=1..d/2} cos((i−j)·base^(−2r/d)) − d/2)·H/(8h)",
                                    paper = "2212.10356";
  static constexpr auto fields() {
    return std::tuple{Field{"dim", &Sandwich::dim, "d: channels of the sinusoid",
                            Range{.least = 2, .most = 65536}, "channels", "d"},
                      Field{"base", &Sandwich::base, "base of the sinusoid", above_one}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, length
  bool operator==(const Sandwich&) const = default;
};

enum class SliceEnd { leading, trailing };

// Which query heads are RoPE++'s imaginary ones (2512.07525), of a phase of −π/2; alternating: every second, beside the
// real head of the same query.
enum class ImaginaryHeads { none, alternating, second_half, all };

struct Rope {
  double rope_theta = 10000;
  Pairing pairing = Pairing::halves;
  double partial_rotary_factor = 1;
  std::optional<std::int64_t> rotary_dim = {};
  SliceEnd slice = SliceEnd::leading;
  std::vector<std::int64_t> mrope_section = {};
  bool mrope_interleaved = false;
  std::vector<std::int64_t> pair_axes = {};
  std::vector<double> frequency_factors = {};
  bool rotate_values = false;
  bool values_stay = false;
  std::optional<std::int64_t> rotated_heads = {};
  bool reversed = false;
  ImaginaryHeads imaginary_heads = ImaginaryHeads::none;
  DistanceMap distance_map = {};
  Scaling scaling = {};

  static constexpr std::string_view
      name = "rope",
      aliases = "rotary", title = "rotary position embedding (RoPE)",
      formula = "pair r rotates by p·f_r, f_r = b^(−2r/d); the logit depends on i−j alone",
      paper = "2104.09864";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Rope::rope_theta, "base of the frequencies", above_one, "",
              "theta base rotary_emb_base freq_base"},
        Field{"pairing", &Rope::pairing, "halves: (r, r + d/2); interleaved: (2r, 2r + 1)"},
        Field{"partial_rotary_factor", &Rope::partial_rotary_factor,
              "fraction of the head that is rotated", fraction, "", "rotary_pct"},
        Field{"rotary_dim", &Rope::rotary_dim, "channels rotated, instead of the fraction",
              Range{.least = 2}, "channels"},
        Field{"slice", &Rope::slice, "which end of the head is rotated"},
        Field{"mrope_section", &Rope::mrope_section, "pairs for time, height and width",
              not_negative, "pairs"},
        Field{"mrope_interleaved", &Rope::mrope_interleaved,
              "axes alternate pair by pair instead of section by section"},
        Field{"pair_axes", &Rope::pair_axes, "axis of each pair, instead of sections",
              not_negative},
        Field{"frequency_factors", &Rope::frequency_factors,
              "divisor of each pair beside any scaling (GGUF rope_freqs)", positive, "",
              "freq_factors rope_freqs"},
        Field{"rotate_values", &Rope::rotate_values, "values rotated, and the output rotated back"},
        Field{"values_stay", &Rope::values_stay,
              "with rotate_values: the output is not rotated back (RoFormer's rotary_value, CLVP)"},
        Field{"rotated_heads", &Rope::rotated_heads,
              "heads that rotate, the first ones (Qwen2.5-Omni's writer of sound: 1); none: all",
              at_least_one, "heads"},
        Field{"reversed", &Rope::reversed, "every pair rotates the other way (nanochat)"},
        Field{"imaginary_heads", &Rope::imaginary_heads,
              "query heads that have a phase of −π/2 (RoPE++)", any_number, "", "imaginary"},
        Field{"distance_map", &Rope::distance_map, "what far distances are taken for"}};
  }
  // Needs head_dim; where some heads are imaginary or do not rotate, heads.
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Rope&) const = default;
};

struct XPos {
  double rope_theta = 10000;
  Pairing pairing = Pairing::interleaved;
  double scale_base = 512, gamma = 0.4;
  std::optional<double> centre = {};

  static constexpr std::string_view
      name = "xpos",
      aliases = "", title = "xPos: RoPE with a decay by distance",
      formula = "q·ζ_r^((p−c)/s), k·ζ_r^(−(p−c)/s), ζ_r = (2r/d + γ)/(1 + γ)", paper = "2212.10554";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &XPos::rope_theta, "base of the frequencies", above_one, "",
              "theta base"},
        Field{"pairing", &XPos::pairing, "halves: (r, r + d/2); interleaved: (2r, 2r + 1)"},
        Field{"scale_base", &XPos::scale_base, "s: distance over which a pair decays by ζ",
              positive, "tokens"},
        Field{"gamma", &XPos::gamma, "how much the fastest pair keeps", positive},
        Field{"centre", &XPos::centre,
              "position with growth 1; null: the middle of the length compiled for", any_number,
              "tokens"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const XPos&) const = default;
};

enum class AxisOrder { height_width, width_height };
enum class AxisFrequencies {
  shared,       // both axes have b^(−4r/d)
  alternating,  // height has the even frequencies b^(−4r/d), width the odd ones (Pixtral)
  in_turns,     // both axes have b^(−4r/d), and pair by pair they take turns (Kimi)
};

struct Axial {
  double rope_theta = 100;
  Pairing pairing = Pairing::interleaved;
  AxisOrder order = AxisOrder::width_height;
  AxisFrequencies frequencies = AxisFrequencies::shared;
  bool blocks = false;
  bool normalised = false;
  bool tiled = false;
  std::vector<std::int64_t> axes_dim = {};
  std::vector<double> axis_theta = {};
  std::vector<double> position_scale = {};

  static constexpr std::string_view
      name = "axial",
      aliases = "rope2d rope-2d 2d", title = "2-D axial RoPE",
      formula =
          "half of the pairs rotate by x·b^(−4r/d), half by y·b^(−4r/d); with axes_dim, pair k of "
          "axis a by p_a·b_a^(−2k/D_a)",
      paper = "2403.13298";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Axial::rope_theta, "base of the frequencies", above_one, "",
              "theta base"},
        Field{"pairing", &Axial::pairing, "halves: (r, r + d/2); interleaved: (2r, 2r + 1)"},
        Field{"order", &Axial::order, "axis of the first half of the pairs"},
        Field{"frequencies", &Axial::frequencies,
              "the same for both axes; alternating (Pixtral); in_turns, pair by pair (Kimi)"},
        Field{"blocks", &Axial::blocks, "each axis pairs its own half of the head (Gemma 4)"},
        Field{"normalised", &Axial::normalised,
              "patch centres in [−1, 1] times 2π (DINOv3): positions are 2i + 1 − grid"},
        Field{"tiled", &Axial::tiled,
              "with axes_dim: cos and sin are laid out for halves though neighbours make the pairs, "
              "so that the channels of a pair rotate by two angles (V-JEPA 2)"},
        Field{"axes_dim", &Axial::axes_dim,
              "D_a, channels of each axis (Flux: 16,56,56); none: two halves", Range{.least = 2},
              "channels"},
        Field{"axis_theta", &Axial::axis_theta, "b_a, base of each axis; none: rope_theta",
              above_one},
        Field{"position_scale", &Axial::position_scale,
              "positions times this first, one or one for each axis (SAM 3: window/grid)",
              positive}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Axial&) const = default;
};

struct Mixed {
  double rope_theta = 10;
  Pairing pairing = Pairing::interleaved;
  std::vector<double> angles = {};
  std::vector<double> frequencies = {};

  static constexpr std::string_view
      name = "mixed",
      aliases = "rope-mixed", title = "2-D mixed RoPE, learned per head",
      formula = "angle = f^x_r·x + f^y_r·y; starts at b^(−4r/d)·(cos φ_h, sin φ_h)",
      paper = "2403.13298";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Mixed::rope_theta, "base of the starting frequencies", above_one, "",
              "theta base"},
        Field{"pairing", &Mixed::pairing, "halves: (r, r + d/2); interleaved: (2r, 2r + 1)"},
        Field{"angles", &Mixed::angles, "starting direction φ of each head; none: spread evenly",
              any_number, "rad"},
        Field{"frequencies", &Mixed::frequencies, "learned: [head][x, y][pair]", any_number,
              "rad/patch"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim, heads
  bool operator==(const Mixed&) const = default;
};

struct Pope {
  double rope_theta = 10000;
  std::optional<std::int64_t> rotary_dim = {};
  std::vector<double> phases = {};

  static constexpr std::string_view
      name = "pope",
      aliases = "polar", title = "polar position embedding (PoPE)",
      formula =
          "q·k = Σ_c sp(q_c)·sp(k_c)·cos((i−j)·f_c − δ_c), f_c = b^(−c/d), sp(x) = ln(1 + e^x)",
      paper = "2509.10534";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Pope::rope_theta, "base of the frequencies", above_one, "",
              "theta base"},
        Field{"rotary_dim", &Pope::rotary_dim,
              "d, channels that turn; the others are as they come; none: all", Range{.least = 1},
              "channels", "dim"},
        Field{"phases", &Pope::phases,
              "learned δ of the keys, [kv_head][channel] or [channel], clamped to [−2π, 0]",
              any_number, "rad", "bias learned_bias"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Pope&) const = default;
};

struct Fope {
  double rope_theta = 10000;
  std::int64_t max_position_embeddings = 4096;
  std::optional<std::int64_t> num_inv_freq = {};
  std::optional<std::int64_t> mixed_pairs = {};
  std::vector<double> cos_coef = {}, sin_coef = {};
  double rest_sine = 1;

  static constexpr std::string_view
      name = "fope",
      aliases = "fourier", title = "Fourier position embedding (FoPE)",
      formula = "pair r: cos = Σ_u cos(p f_u)·C[u][r], sin = Σ_u sin(p f_u)·S[u][r], f_u > 2π/L",
      paper = "2412.17739";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Fope::rope_theta, "base of the frequencies", above_one, "",
              "theta base"},
        Field{"max_position_embeddings", &Fope::max_position_embeddings,
              "L: frequencies that turn less than once within it are left out", Range{.least = 1},
              "tokens", "length L"},
        Field{"num_inv_freq", &Fope::num_inv_freq,
              "frequencies left in, the fastest; none: those above 2π/L", not_negative},
        Field{"mixed_pairs", &Fope::mixed_pairs,
              "pairs that have a mixture, the first; none: as many as frequencies", not_negative,
              "pairs"},
        Field{"cos_coef", &Fope::cos_coef,
              "C, [kv_head][frequency][pair] or [frequency][pair]; none: each pair its own"},
        Field{"sin_coef", &Fope::sin_coef, "S, the same"},
        Field{"rest_sine", &Fope::rest_sine,
              "sine of the other pairs, whose cosine is 1, at every position"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Fope&) const = default;
};

// Biases of the patches of a picture or of a window of it, the geometry's grid, at grid_positions() (positions.h): a distance
// tells rows and columns.
struct GridBias {
  bool absolute = false;
  bool class_token = false;
  Table table = {};  // [row][heads], borrowed

  static constexpr std::string_view
      name = "grid_bias",
      aliases = "swin beit levit", title = "a learned bias by rows and columns (Swin)",
      formula = "b_h[(Δy + H−1)(2W−1) + Δx + W−1], Δ = query − key; absolute: b_h[|Δy|·W + |Δx|]",
      paper = "2103.14030";
  static constexpr auto fields() {
    return std::tuple{
        Field{"absolute", &GridBias::absolute, "rows and columns without their signs (LeViT)"},
        Field{"class_token", &GridBias::class_token,
              "three rows more for a class token that stands first (BEiT)"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &GridBias::table, "b: [row][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, the grid
  bool operator==(const GridBias&) const = default;
};

struct LogCpb {
  std::int64_t pretrained_height = 0, pretrained_width = 0;
  // Borrowed: two layers, [hidden][2] of (y, x), [hidden] and [heads][hidden].
  Table hidden_weight = {}, hidden_bias = {}, output_weight = {};

  static constexpr std::string_view
      name = "log_cpb",
      aliases = "swin_v2 swinv2", title = "log-spaced continuous bias (Swin v2)",
      formula = "16·σ(W₂ relu(W₁ c + b)), c = sign(Δ)·log₂(1 + |8Δ/(n−1)|)/3 of rows and columns",
      paper = "2111.09883";
  static constexpr auto fields() {
    return std::tuple{
        Field{"pretrained_height", &LogCpb::pretrained_height,
              "n of rows, those of the window in training; 0: as many as here",
              Range{.least = 0, .most = 4096}, "patches"},
        Field{"pretrained_width", &LogCpb::pretrained_width, "n of columns; 0: as many as here",
              Range{.least = 0, .most = 4096}, "patches", "pretrained_window_size"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"hidden_weight", &LogCpb::hidden_weight, "W₁: [hidden][2], of rows and columns"},
        TableField{"hidden_bias", &LogCpb::hidden_bias, "b: [hidden]"},
        TableField{"output_weight", &LogCpb::output_weight, "W₂: [heads][hidden]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, the grid
  bool operator==(const LogCpb&) const = default;
};

struct Decomposed {
  Table row_vectors = {}, column_vectors = {};  // [2H−1][head_dim] and [2W−1][head_dim], borrowed

  static constexpr std::string_view
      name = "decomposed",
      aliases = "sam vitdet mvit", title = "vectors by rows and by columns (SAM, ViTDet, MViT)",
      formula = "q_i·k_j/√d + q_i·R^h[Δy + H−1] + q_i·R^w[Δx + W−1], Δ = query − key",
      paper = "2112.01526";
  static constexpr auto fields() { return std::tuple{}; }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"row_vectors", &Decomposed::row_vectors, "R^h: [2 · height − 1][head_dim]"},
        TableField{"column_vectors", &Decomposed::column_vectors,
                   "R^w: [2 · width − 1][head_dim]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim, the grid
  bool operator==(const Decomposed&) const = default;
};

struct AxisBuckets {
  std::int64_t num_buckets = 32, max_distance = 128;
  std::int64_t axes = 2, axis_num_buckets = 64, axis_max_distance = 256, axis_unit = 1;
  bool divided = true;
  // [num_buckets][heads] and [axes][axis_num_buckets][heads]; borrowed until compiled
  Table table = {}, axis_tables = {};

  static constexpr std::string_view
      name = "axis_buckets",
      aliases = "layoutlmv3", title = "T5's buckets on several axes (LayoutLM, UDOP)",
      formula = "B⁰[bucket(text)] + Σ_a B^a[bucket(page axis a / unit)], LayoutLM v3: /√d",
      paper = "2204.08387";
  static constexpr auto fields() {
    return std::tuple{
        Field{"num_buckets", &AxisBuckets::num_buckets, "rows of the text's table",
              Range{.least = 4, .most = 65536}, "buckets", "rel_pos_bins"},
        Field{"max_distance", &AxisBuckets::max_distance, "T5's, of the text",
              Range{.least = 2, .most = 1 << 20}, "tokens", "max_rel_pos"},
        Field{"axes", &AxisBuckets::axes, "further axes of the positions, such as x and y",
              Range{.least = 0, .most = 8}},
        Field{"axis_num_buckets", &AxisBuckets::axis_num_buckets, "rows of each one's table",
              Range{.least = 4, .most = 65536}, "buckets", "rel_2d_pos_bins"},
        Field{"axis_max_distance", &AxisBuckets::axis_max_distance, "T5's, of each, in units",
              Range{.least = 2, .most = 1 << 20}, "", "max_rel_2d_pos"},
        Field{"axis_unit", &AxisBuckets::axis_unit,
              "positions that count as one step on these axes, cut towards zero",
              Range{.least = 1, .most = 1 << 20}},
        Field{"divided", &AxisBuckets::divided, "the sum is divided by √head_dim (LayoutLM v3)"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &AxisBuckets::table, "B⁰: [num_buckets][heads]"},
                      TableField{"axis_tables", &AxisBuckets::axis_tables,
                                 "B^a: [axes][axis_num_buckets][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, head_dim where divided
  bool operator==(const AxisBuckets&) const = default;
};

// The list of schemes.
using Scheme =
    std::variant<NoPe, Index, Sinusoidal, Learned, Shaw, T5, Deberta, Alibi, Kerple, Sandwich, Rope,
                 XPos, Axial, Mixed, Pope, Fope, Profiles, TransformerXl, ClippedBias, GridBias,
                 LogCpb, Decomposed, AxisBuckets, FourierFeatures>;

// --- verbs ---------------------------------------------------------------------------------------

// A scheme in a model, as tables and numbers in double precision. Errors: a field outside its
// range, a geometry the scheme needs and does not have, a length it cannot reach.
// With an engine's angles a rotation is computed in that engine's float arithmetic, frequencies
// included; whatever does not rotate is as it was. Errors besides: the engine cannot express it.
Expected<Plan> compile(const Scheme& scheme, const Geometry& geometry,
                       Angles angles = Angles::exact);

// Frequencies of RoPE alone: in double, in float as Hugging Face computes them, or in long double, to
// measure the others against.
template <class Real>
Expected<Scaled<Real>> rope_frequencies(const Rope& rope, const Geometry& geometry);

// ALiBi's slopes, [heads], positive. math: 2108.12409.
Expected<std::vector<double>> alibi_slopes(std::int64_t heads, double bias_max = 8,
                                           SlopeRounding rounding = SlopeRounding::exact);

// T5's bucket of a relative position (key − query).
Expected<std::int64_t> t5_bucket(std::int64_t relative, std::int64_t num_buckets,
                                 std::int64_t max_distance, bool bidirectional);

// DeBERTa's bucket of a relative position (query − key), before the shift by position_buckets.
Expected<std::int64_t> deberta_bucket(std::int64_t relative, std::int64_t position_buckets,
                                      std::int64_t max_position);

// The gradients by KERPLE's parameters, [head] or one for all as the scheme has them, given the one by
// its bias table that attend_backward gives: [head or 1][distance], one row where both lists have one
// entry. Errors: another number of rows.
struct KerpleGradients {
  std::vector<double> p = {}, a = {};
};
Expected<KerpleGradients> kerple_gradients(const Kerple& scheme, const Tensor& bias_gradient);

// The gradients by Transformer-XL's learned tensors, in their shapes row by row, given what attend_backward gives for its
// plan: by relative.key [heads][row][head_dim], by the bias table [heads][row] and by relative.query, the latter two absent
// without biases. Errors: tables not given, other shapes.
struct TransformerXlGradients {
  std::vector<double> projection = {}, content_bias = {}, position_bias = {};
};
Expected<TransformerXlGradients> transformer_xl_gradients(const TransformerXl& scheme,
                                                          const Geometry& geometry,
                                                          const Tensor& key_gradient,
                                                          const Tensor& bias_gradient = {},
                                                          const Tensor& query_gradient = {});

// --- reflection: the lists as data ---------------------------------------------------------------

std::span<const SchemeInfo> all_schemes();  // in the list's order
std::span<const SchemeInfo> all_scalings();
const SchemeInfo& info(const Scheme& scheme);
const SchemeInfo& info(const Scaling& scaling);

// A scheme or scaling with its defaults, by name or alias. Errors: unknown name (with the nearest).
Expected<Scheme> make_scheme(std::string_view name);
Expected<Scaling> make_scaling(std::string_view name);

// Sets a field by name or alias. A Rope answers for its scaling's fields too (its scaling's first),
// and "rope_type" replaces the scaling, as "distance_map" does the map. Errors: no such field, wrong kind, out of range,
// a field of another distance map.
Expected<void> set_field(Scheme& scheme, std::string_view name, const FieldValue& value);
Expected<void> set_field(Scaling& scaling, std::string_view name, const FieldValue& value);

// Sets several that come in any order: words first, since one of them may choose what has the others.
template <class S>
Expected<void> set_fields(S& scheme, std::span<const FieldSetting> fields) {
  for (const bool words : {true, false})
    for (const auto& [name, value] : fields) {
      if (std::holds_alternative<std::string>(value) != words) continue;
      if (Expected<void> set = set_field(scheme, name, value); !set) return set;
    }
  return {};
}

// Gives a scheme a tensor by its name in tables(). Errors: no such table. What shape it must have compile() says.
Expected<void> set_table(Scheme& scheme, std::string_view name, Table table);

// All fields with their values, in declared order (a Rope's without its scaling's).
std::vector<FieldSetting> settings(const Scheme& scheme);
std::vector<FieldSetting> settings(const Scaling& scaling);

// A scaling's number by its field's name; none if it has no such field or the field is null.
std::optional<double> number_of(const Scaling& scaling, std::string_view field);

}  // namespace posenc
