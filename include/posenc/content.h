// Attention whose position term reads the content, or the query's absolute position, so that no
// Plan can say it: a plan is tables and numbers known before q and k are. Each scheme is a value of
// the list at the end, as those of schemes.h are. FIRE and forgetting add to the logits of the loop
// that runs plans; the others, which weigh a key by the logits of those between or have no product
// q·k, share one of their own. attend and attend_backward take it beside what attend takes
// (attention.h); float64 is computed in double, the other dtypes in float, rounded once. A query
// that sees no key gives zeros. Keys stream through in blocks: memory beyond the arguments grows
// with the length, not with its square. The same bits for any number of threads.
//
// Sink logits (AttentionInputs::sink_logits) are for FIRE and forgetting, whose softmax is
// attend's; the others refuse them.
//
// The plan beside a scheme may rotate (queries, keys, values) and scale logits; the empty plan is
// what most of the papers use. Its `add` part went to the embedding, as always.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "posenc/attention.h"
#include "posenc/fields.h"

namespace [[gnu::visibility("default")]] posenc {

// Where attend_backward writes what; what is absent is not wanted. Shapes are those of what each is
// the gradient of, a number's is [1] or none.
struct ContentGradients {
  Tensor q = {}, k = {}, v = {};
  Tensor hidden_weight = {}, hidden_bias = {}, output_weight = {}, output_bias = {};  // FIRE
  Tensor c = {}, length_multiplier = {};  // FIRE, numbers
  Tensor embeddings = {};                 // CoPE
  Tensor log_gates = {};                  // forgetting, Wall, PaTH
  Tensor channel_gates = {};              // Wall
  Tensor w = {}, beta = {};               // PaTH
  Tensor p_queries = {}, p_keys = {};     // GRAPE-AP
  Tensor sink_logits = {};  // like AttentionInputs::sink_logits; of FIRE and forgetting
};

// --- the schemes ---------------------------------------------------------------------------------

namespace detail {
constexpr Projection gate{.activation = Activation::log_sigmoid, .biased = true};
// Of a forget gate for each head, beside what else a scheme does.
template <class S>
constexpr auto gates_beside() {
  return TableField{"log_gates", &S::log_gates,
                    "of a forget gate beside them, [batch][heads][keys]; none where not given"}
      .with({.axes = {Axis::batch, Axis::head, Axis::key},
             .learned = true,
             .optional = true,
             .projection = gate});
}
}  // namespace detail

// Functional interpolation (Li et al. 2023, arXiv 2310.04418), i the query's position, j the key's:
//   logit_ij = q_i·k_j/√d + f_h(x_ij),   x_ij = ψ(|i − j|) / (ψ(max(i, L)) + 10⁻⁶)
//   ψ(n) = ln(|c|·n + 1),   L = |length_multiplier · initial_length|
//   f_h(x) = output_bias[h] + Σ_u output_weight[h][u] · max(0, hidden_weight[u]·x + hidden_bias[u])
// For keys in the past x is within [0, 1], whatever the length. The distance is divided by where
// the query stands (from L on), hence the absolute position. In PyTorch the weights are
// mlp.0.weight, mlp.0.bias, mlp.2.weight, mlp.2.bias of Linear(1, 32), ReLU, Linear(32, heads).
// Errors besides: weights that are not for these heads or not finite, positions of several axes.
struct Fire {
  std::vector<double> hidden_weight = {}, hidden_bias = {};  // [hidden]
  std::vector<double> output_weight = {};                    // [heads][hidden]
  std::vector<double> output_bias = {};                      // [heads]
  double c = 0.1;
  double initial_length = 512;   // not learned
  double length_multiplier = 1;  // learned

  static constexpr std::string_view
      name = "fire",
      aliases = "", title = "FIRE: functional interpolation",
      formula = "+ f_h(ψ(|i−j|)/ψ(max(i, L))), ψ(n) = ln(|c|·n + 1), f_h a small network",
      paper = "2310.04418";
  static constexpr auto fields() {
    return std::tuple{
        Field{"hidden_weight", &Fire::hidden_weight, "first layer of the network, [hidden]",
              any_number, "", "mlp.0.weight", true}
            .with({.axes = {Axis::unit}, .learned = true, .deviation = 1}),
        Field{"hidden_bias", &Fire::hidden_bias, "its bias, [hidden]", any_number, "", "mlp.0.bias",
              true}
            .with({.axes = {Axis::unit}, .learned = true, .deviation = 0.5}),
        Field{"output_weight", &Fire::output_weight, "second layer, [heads][hidden]", any_number,
              "", "mlp.2.weight", true}
            .with({.axes = {Axis::head, Axis::unit}, .learned = true, .deviation = 1}),
        Field{"output_bias", &Fire::output_bias, "its bias, [heads]", any_number, "", "mlp.2.bias",
              true}
            .with({.axes = {Axis::head}, .learned = true}),
        Field{"c", &Fire::c, "how soon ψ bends"}.with({.learned = true}),
        Field{"initial_length", &Fire::initial_length, "L before the multiplier; not learned",
              any_number, "tokens", "init_L"},
        Field{"length_multiplier", &Fire::length_multiplier, "of L; learned", any_number, "",
              "L_multiplier"}
            .with({.learned = true})};
  }
  static constexpr Reads reads = Reads::positions;

  double threshold() const { return std::abs(length_multiplier * initial_length); }
  double psi(double n) const { return std::log1p(std::abs(c) * n); }
  // x of a query at `query` and a key at `key`.
  double interpolated(std::int64_t query, std::int64_t key) const;

  bool operator==(const Fire&) const = default;
};

// Of those that follow, which read the keys between query and key: they are causal, so another mask
// than a causal one, or a prefix that is seen from before, is an error. Keys must stand in the
// order of their positions (those that Mask::keep hides may stand anywhere), as in a text and in a
// cache; a hidden key counts for nothing.

// Contextual position encoding (Golovneva et al. 2024, arXiv 2405.18719): a key's position is how
// many tokens between it and the query, both included, the query counts.
//   z_ij = q_i·k_j/√d,   p_ij = min(Σ_{l=j..i} σ(z_il), positions − 1)
//   logit_ij = z_ij + (1 − w) q_i·e[⌊p⌋] + w q_i·e[⌈p⌉],   w = p − ⌊p⌋
// Keys that the mask hides (by padding, a window, a chunk) are not counted. Beside a plan that
// rotates, z is of rotated queries and keys; e meets the query as it came. Where p is capped it has
// no gradient. The gradient's memory grows with heads · min(positions, keys) · head_dim besides.
struct Cope {
  // e: [positions][head_dim], or [head][positions][head_dim]; borrowed. The authors store it as
  // [1][head_dim][positions]: a view with the last two axes swapped.
  Table embeddings = {};
  // The paper's listing adds q·e as it is. The authors' repository divides it by √head_dim with the
  // rest (unless --cope-nodiv): true.
  bool before_scale = false;

  static constexpr std::string_view
      name = "cope",
      aliases = "contextual", title = "CoPE: contextual positions",
      formula = "+ q_i·e[p], p = Σ_{l=j..i} σ(z_il), e between two rows by the fraction of p",
      paper = "2405.18719";
  static constexpr auto fields() {
    return std::tuple{Field{"before_scale", &Cope::before_scale,
                            "q·e added before 1/√d instead of after (the authors' repository)"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"embeddings", &Cope::embeddings,
                                 "e: [positions][head_dim], or [heads][positions][head_dim]"}
                          .with({.axes = {Axis::head, Axis::row, Axis::channel},
                                 .for_all_heads = true,
                                 .learned = true})};
  }
  static constexpr Reads reads = Reads::keys;

  bool operator==(const Cope&) const = default;
};

// Forgetting attention of the Forgetting Transformer (FoX; Lin et al. 2025, arXiv 2503.02130): each
// token forgets some of what came before it.
//   logit_ij = q_i·k_j/√d + Σ_{l=j+1..i} log_gate_l
// A query is the last key that stands no later than it (with positions of several axes, the last
// query is the last key), so while decoding gates are needed for all keys, as k and v are. Sums are
// formed in double. The gradient of a gate is 0 for one of −∞ and for padding; by the gate's own
// logit x it is times 1 − f, f = σ(x).
// Errors besides: a gate above 0 or NaN; neither gates nor a bias.
struct Forgetting {
  // [batch][heads][keys], any dtype, borrowed: log σ(w_h·x_l + b_h) of each token, at most 0. −∞
  // forgets all that came before the token. As they come from a projection, [batch][keys][heads]: a
  // swapped view.
  Table log_gates = {};
  // b: gates that read no token, log σ(b_h), one for each head or one for all; the scheme is ALiBi
  // then, with slopes −log σ(b_h). Read where log_gates is not given.
  std::vector<double> gate_bias = {};

  static constexpr std::string_view
      name = "forgetting",
      aliases = "fox forget-gate", title = "forgetting attention (FoX)",
      formula =
          "+ Σ_{l=j+1..i} log f_l, f_l = σ(w_h·x_l + b_h): each token forgets what came before",
      paper = "2503.02130";
  static constexpr auto fields() {
    return std::tuple{Field{"gate_bias", &Forgetting::gate_bias,
                            "b of gates σ(b) that read no token, one for each head or one for all; "
                            "where log_gates is not given"}
                          .with({.axes = {Axis::head}, .for_all_heads = true})};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"log_gates", &Forgetting::log_gates,
                                 "log σ(w_h·x_l + b_h) of each token, [batch][heads][keys]"}
                          .with({.axes = {Axis::batch, Axis::head, Axis::key},
                                 .learned = true,
                                 .instead = "gate_bias",
                                 .projection = detail::gate})};
  }
  static constexpr Reads reads = Reads::gates;

  bool operator==(const Forgetting&) const = default;
};

// Stick-breaking attention (Tan et al. 2024, arXiv 2410.17980): from the query backwards, each key
// breaks its share off what is left of a stick. No softmax, no position at all: nearer keys come
// first.
//   z_ij = q_i·k_j/√d,   A_ij = σ(z_ij) Π_{j<l<i} (1 − σ(z_il)),   out_i = Σ_{j<i} A_ij v_j
// The weights of a query sum to at most 1; the rest of the stick goes to nobody. That is the
// remainder, formed as the product Π (1 − σ(z_il)); a model may give it to the query's own value.
struct StickBreaking {
  // The paper's boundary: keys before the query's own position, which is outside of the product
  // too. True: the query's own key takes the first share (attend_current in public code).
  bool attend_current = false;

  static constexpr std::string_view name = "stick_breaking", aliases = "stick-breaking sba",
                                    title = "stick-breaking attention",
                                    formula = "A_ij = σ(z_ij)·Π_{j<l<i} (1 − σ(z_il)), no softmax",
                                    paper = "2410.17980";
  static constexpr auto fields() {
    return std::tuple{Field{"attend_current", &StickBreaking::attend_current,
                            "the query's own key takes the first share"}};
  }
  static constexpr Reads reads = Reads::keys;

  bool operator==(const StickBreaking&) const = default;
};

// Wall attention (Tilde Research 2026, blog.tilderesearch.com/blog/wall-attn): each channel of each
// head forgets at a rate of its own, as the diagonal gates of linear recurrent networks do. With
// G_ijc = Σ_{l=j+1..i} channel_gate_lc, the rotated q and k where the plan rotates:
//   logit_ij = Σ_c q_ic k_jc e^{G_ijc}/√d  [+ Σ_{l=j+1..i} log_gate_l]
// Gates of 0 leave attention as it was; constant ones are the decay of xPos. A query is the last
// key that stands no later than it, as in forgetting. Sums of gates are formed in double, forwards
// from the nearest anchor, so that no exponent is above 0; none is formed over more than 64 keys
// and then subtracted. Errors besides: a gate above 0 or NaN; no channel gates.
struct Wall {
  // [batch][heads][keys][head_dim], any dtype, borrowed: log σ(W x_l + b) of each token and
  // channel, at most 0; −∞ forgets all that the channel held. Heads are the query's. As they come
  // from a projection, [batch][keys][heads][head_dim]: a swapped view.
  Table channel_gates = {};
  // A gate of forgetting beside them, [batch][heads][keys]; absent: none. It is not scaled.
  Table log_gates = {};

  static constexpr std::string_view
      name = "wall",
      aliases = "", title = "Wall attention: each channel forgets at its own rate",
      formula = "Σ_c q_ic k_jc e^{Σ_{l=j+1..i} g_lc}/√d, g_l = log σ(W x_l + b) for each channel",
      paper = "";
  static constexpr auto fields() { return std::tuple{}; }
  static constexpr auto tables() {
    return std::tuple{TableField{"channel_gates", &Wall::channel_gates,
                                 "log σ(W x_l + b) of each token, [batch][heads][keys][head_dim]"}
                          .with({.axes = {Axis::batch, Axis::head, Axis::key, Axis::channel},
                                 .learned = true,
                                 .projection = detail::gate}),
                      detail::gates_beside<Wall>()};
  }
  static constexpr Reads reads = Reads::keys;

  bool operator==(const Wall&) const = default;
};

// PaTH attention (Yang et al. 2025, arXiv 2505.16381): every token between key and query reflects
// or dampens the query's component along a direction of its own, with H_l = I − β_l w_l w_lᵀ
//   logit_ij = q_iᵀ H_i H_{i−1} … H_{j+1} k_j/√d  [+ Σ_{l=j+1..i} log_gate_l]
// Where |w| = 1, H is a projection for β = 1 and a reflection for β = 2; the authors have β =
// 2σ(·). A query is the last key that stands no later than it, as in forgetting; its own factor is
// among those of older keys. Keys that Mask::keep hides have no factor. Products of factors are
// formed by blocks of 64 keys (the UT transform), in memory that grows with the length: 4·head_dim
// + head_dim²/64 + 128 numbers for each key. To decode with work that grows with the cache alone,
// see path_keys.
// Errors besides: neither w nor beta; a log gate above 0.
struct Path {
  Table w =
      // [batch][kv_heads][keys][head_dim], any dtype, borrowed; taken as it is: normalize it before
      {};
  Table beta = {};  // [batch][kv_heads][keys]
  // Gates of forgetting beside them (PaTH-FoX), [batch][heads][keys]; absent: none.
  Table log_gates = {};
  // The paper adds the gates' sum to the scaled logit, as FoX does. The authors' code
  // (flash-linear-attention) divides it by √head_dim with the rest: true.
  bool gates_before_scale = false;

  static constexpr std::string_view
      name = "path",
      aliases = "", title = "PaTH: products of Householder-like factors",
      formula = "q_iᵀ H_i … H_{j+1} k_j/√d, H_l = I − β_l w_l w_lᵀ of each token",
      paper = "2505.16381";
  static constexpr auto fields() {
    return std::tuple{
        Field{"gates_before_scale", &Path::gates_before_scale,
              "the log gates' sum added before 1/√d instead of after (the authors' code)"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"w", &Path::w, "the factors' directions, [batch][kv_heads][keys][head_dim]"}
            .with({.axes = {Axis::batch, Axis::key_head, Axis::key, Axis::channel},
                   .learned = true,
                   .projection = {.activation = Activation::unit_length, .rank = 32}}),
        TableField{"beta", &Path::beta, "their strengths, [batch][kv_heads][keys]"}.with(
            {.axes = {Axis::batch, Axis::key_head, Axis::key},
             .learned = true,
             .projection = {.activation = Activation::twice_sigmoid, .biased = true}}),
        detail::gates_beside<Path>()};
  }
  static constexpr Reads reads = Reads::keys;

  bool operator==(const Path&) const = default;
};

// Path-integral additive GRAPE (GRAPE-AP; Zhang et al., ICLR 2026, arXiv 2512.07805): forgetting
// whose gates the query sets, too. With p of u channels, made of the token for the queries and for
// the keys,
//   logit_ij = q_i·k_j/√d + slope_h Σ_{l=j+1..i} log σ(p_queries_i·p_keys_l/u)
// The authors project one p of each token. The query's is taken as it is; the key's is divided by
// its root mean square and then rotated by its position times 1 radian, backwards, in halves:
// rotate() with frequencies of −1 does so. No pair of p and position is stored: a block of gates is
// made as its keys are met. Keys that the mask hides have no gate. Sums are formed in double.
// Errors besides: neither p; slopes that are negative, or not one, one for each head or none.
struct GrapeAp {
  Table p_queries = {};             // [batch][heads][queries][u], any dtype, borrowed
  Table p_keys = {};                // [batch][heads][keys][u]
  std::vector<double> slopes = {};  // of each head, or one for all; empty: ALiBi's

  static constexpr std::string_view
      name = "grape_ap",
      aliases = "grape-ap path_integral", title = "GRAPE-AP: forget gates that the query sets, too",
      formula = "+ m_h Σ_{l=j+1..i} log σ(p_i·p̂_l/u), m_h ALiBi's slopes, p made of each token",
      paper = "2512.07805";
  static constexpr auto fields() {
    return std::tuple{Field{"slopes", &GrapeAp::slopes,
                            "m of each head, or one for all; none: those of ALiBi", not_negative}
                          .with({.axes = {Axis::head}, .for_all_heads = true, .alibi = true})};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"p_queries", &GrapeAp::p_queries, "p of the queries, [batch][heads][queries][u]"}
            .with({.axes = {Axis::batch, Axis::head, Axis::query, Axis::column},
                   .learned = true,
                   .projection = {.columns = 8}}),
        TableField{"p_keys", &GrapeAp::p_keys,
                   "p̂ of the keys, normalized and rotated, [batch][heads][keys][u]"}
            .with({.axes = {Axis::batch, Axis::head, Axis::key, Axis::column},
                   .learned = true,
                   .projection = {
                       .activation = Activation::rms_rotated, .columns = 8, .same = "p_queries"}})};
  }
  static constexpr Reads reads = Reads::keys;

  bool operator==(const GrapeAp&) const = default;
};

// The list.
using ContentScheme = std::variant<Fire, Cope, Forgetting, StickBreaking, Wall, Path, GrapeAp>;

// --- verbs ---------------------------------------------------------------------------------------

// The attention of any of them. `remainder` [batch, heads, queries], if given, receives what no key
// took: 1 − Σ_j A_ij, of a scheme that leaves something (stick-breaking).
// Errors: those of attend (attention.h) and of the scheme; a plan with a bias or relative vectors;
// parameters whose shapes do not match; a remainder of a scheme that leaves none.
Expected<void> attend(const AttentionInputs& in, const ContentScheme& scheme, const Plan& plan,
                      const Tensor& out, const Tensor& remainder = {});

// The same as the formula reads, in plain double loops on one thread: the truth for attend. If
// given, `logits` and `weights` [batch, heads, queries, keys] show its inside: what the softmax
// takes, −∞ where a key has no weight (of stick-breaking, which has no softmax, ln A_ij), and what
// each value is multiplied by.
Expected<void> attend_reference(const AttentionInputs& in, const ContentScheme& scheme,
                                const Plan& plan, const Tensor& out, const Tensor& logits = {},
                                const Tensor& weights = {});

// Its gradients, given that of a loss by its output, out_gradient [batch, heads, queries, head_dim]
// of q's dtype, which may be broadcast, and that by the remainder, if one was used. They are
// written, not added to, each where a tensor is given: its dtype any, its memory an input's too.
// Weights are formed again, so nothing needs to be cached; memory grows with the length, not with
// its square. Parameters are summed in double.
// Errors: those of attend; a gradient of another shape, or of what the scheme does not learn. Then
// nothing is written.
Expected<void> attend_backward(const AttentionInputs& in, const ContentScheme& scheme,
                               const Plan& plan, const Tensor& out_gradient,
                               const ContentGradients& gradients,
                               const Tensor& remainder_gradient = {});

// What FIRE adds to the logits, for engines that take it as a tensor: out [head, query, key].
Expected<void> fire_bias(const Fire& fire, const Positions& queries, const Positions& keys,
                         const Tensor& out);

// PaTH's keys for a cache, written where they stand: `keys` [batch, kv_heads, cached, head_dim], of
// which the last are those of the new tokens whose factors w [batch, kv_heads, new, head_dim] and
// beta [batch, kv_heads, new] are given. Each key becomes H … H k, of the factors of all new tokens
// behind it. Called with all tokens of a prompt, and then with each that follows, it leaves keys
// for which PaTH is attention without position,
//   attend({q, keys, v, …}, {}, out)        or, beside log gates,   attend(…,
//                                           Forgetting{log_gates}, {}, out)
// whose cost for a token is that of the cache. A key is rounded to its dtype each time: float32 is
// advised. A plan that rotates has to do so before. Errors: shapes that do not fit; keys that share
// memory.
Expected<void> path_keys(const Tensor& keys, const Tensor& w, const Tensor& beta,
                         Threads threads = {});

// --- reflection, as of schemes (schemes.h) -------------------------------------------------------

std::span<const SchemeInfo> all_content_schemes();  // in the list's order
const SchemeInfo& info(const ContentScheme& scheme);

// One with its defaults, by name or alias. Errors: unknown name (with the nearest).
Expected<ContentScheme> make_content_scheme(std::string_view name);

// By name or alias. Errors: no such field, wrong kind, out of range.
Expected<void> set_field(ContentScheme& scheme, std::string_view name, const FieldValue& value);

// Gives it a table by its name. Errors: no such table. What shape it must have attend says.
Expected<void> set_table(ContentScheme& scheme, std::string_view name, Table table);
// The one that it has by that name, which is empty where none was given; null: it takes none.
const Table* table_of(const ContentScheme& scheme, std::string_view name);

// Where the gradient of a learned field or table goes, by its name; null: no scheme learns one.
Tensor ContentGradients::* gradient_named(std::string_view name);

// What a scheme learns, and the shapes of the gradients: fields, and tables that it was given.
struct LearnedNumbers {
  std::string_view name;
  std::vector<std::int64_t> shape;
};
std::vector<LearnedNumbers> learned(const ContentScheme& scheme);

// All fields with their values, in declared order.
std::vector<FieldSetting> settings(const ContentScheme& scheme);

// Random numbers in place of what a scheme needs and was not given, to try it with: standard normal
// ones, x, for lists and for learned tables. Tables of tokens hold what a model makes of x:
// log σ(x + open), 2σ(x), rows of length 1. All are of one sequence, that of normals(seed, …) in
// tools.h: lists and learned tables in declared order, and then of each head the tables of tokens,
// one behind the other, [token][column] each.
struct RandomContent {
  std::uint64_t seed = 0;
  std::int64_t heads = 1, kv_heads = 0;  // 0: as many as heads
  std::int64_t length = 1, head_dim = 64;
  std::int64_t hidden = 16, positions = 16, columns = 0;  // of a network, of a table; 0: head_dim
  double open = 2;
  bool alike = false;  // tokens all say what the first one does; of the others nothing is drawn
};
void randomize(ContentScheme& scheme, const RandomContent& how);

}  // namespace posenc
