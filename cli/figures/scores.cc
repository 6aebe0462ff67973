// What one head makes of queries and keys: its logits, and beside them the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/arguments/mask.h"
#include "cli/arguments/npy.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/layout.h"
#include "cli/figures/kind.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_scores {

struct Options {
  std::string q, k, dtype, content = "random";
  std::int64_t length = 64, head = 0;
  std::uint64_t seed = 42;
  bool length_given = false;
  std::optional<MaskFlags> mask;
  std::optional<Encoding> encoding;
};

// Queries or keys of one sequence, [1, heads, seq, head_dim].
struct Vectors {
  Array file;
  std::vector<double> made;
  Tensor view;
};

Expected<Vectors> read_vectors(const std::string& path, const std::string& dtype) {
  Expected<Array> file = read_npy(path);
  if (!file) return std::unexpected(file.error());
  const Expected<Tensor> view = tensor_of(*file, dtype, path);
  if (!view) return std::unexpected(view.error());
  const Tensor whole = view->with_rank(4);
  if (view->rank < 2 || whole.shape[0] != 1 || whole.size() == 0)
    return fail(path, "must be one sequence, [heads, seq, head_dim] or [seq, head_dim]",
                shape_text(*view), "save one sequence of the batch");
  return Vectors{std::move(*file), {}, whole};
}

Vectors random_vectors(std::int64_t heads, std::int64_t length, std::int64_t head_dim, bool same,
                       std::uint64_t seed) {
  Vectors out;
  const std::int64_t rows = same ? 1 : length, count = heads * head_dim;
  const std::vector<double> drawn = normals(seed, static_cast<std::size_t>(rows * count));
  out.made.resize(static_cast<std::size_t>(length * count));
  for (std::int64_t h = 0; h < heads; h++)
    for (std::int64_t t = 0; t < length; t++)
      std::copy_n(drawn.begin() + (h * rows + (same ? 0 : t)) * head_dim, head_dim,
                  out.made.begin() + (h * length + t) * head_dim);
  out.view = Tensor::dense(out.made.data(), {1, heads, length, head_dim});
  return out;
}

// Masked logits of all heads, [head][query][key]. The values of a head do not matter to them.
Expected<std::vector<double>> logits_of(const Vectors& q, const Vectors& k, const Plan& plan,
                                        const Mask& mask) {
  const std::int64_t heads = q.view.shape[1], queries = q.view.shape[2], keys = k.view.shape[2];
  if (Expected<void> good = check_cells(heads * queries, keys, "plot scores"); !good)
    return std::unexpected(good.error());
  std::vector<double> logits(static_cast<std::size_t>(heads * queries * keys));
  Expected<Array> out =
      make_array(q.made.empty() ? q.file.type : NpyType::f64, {1, heads, queries, q.view.shape[3]});
  if (!out) return std::unexpected(out.error());
  Tensor view = q.view;
  view.data = out->data.data();
  if (Expected<void> done =
          attend_reference({q.view, k.view, k.view, Positions::range(keys - queries, queries),
                            Positions::range(0, keys), mask},
                           plan, view, Tensor::dense(logits.data(), {1, heads, queries, keys}));
      !done)
    return std::unexpected(done.error());
  return logits;
}

// Rows of logits to rows of weights; nothing where a key is hidden.
std::vector<double> weights_of(const std::vector<double>& logits, std::int64_t keys) {
  std::vector<double> out(logits.size(), from_data);
  for (std::size_t begin = 0; begin < logits.size(); begin += static_cast<std::size_t>(keys)) {
    double peak = -std::numeric_limits<double>::infinity(), sum = 0;
    const std::size_t end = begin + static_cast<std::size_t>(keys);
    for (std::size_t i = begin; i < end; i++)
      if (!std::isnan(logits[i])) peak = std::max(peak, logits[i]);
    for (std::size_t i = begin; i < end; i++) {
      out[i] = std::exp(logits[i] - peak);
      if (!std::isnan(out[i])) sum += out[i];
    }
    for (std::size_t i = begin; i < end; i++) out[i] /= sum;
  }
  return out;
}

// What each query takes of each key, [head][query][key], nothing of a hidden key: what attention gives
// for values that are the rows of a unit matrix, head_dim keys at a time. Of schemes that read the
// content, whose logits no reference hands out (stick-breaking has none).
Expected<std::vector<double>> weights_of(const Vectors& q, const Vectors& k,
                                         const ContentScheme& scheme, const Mask& mask) {
  const std::int64_t heads = q.view.shape[1], queries = q.view.shape[2], keys = k.view.shape[2];
  const std::int64_t head_dim = q.view.shape[3], kv_heads = k.view.shape[1];
  POSENC_CHECK(check_cells(heads * queries, keys, "plot scores"));
  // One dtype for all, that the unit matrix and the weights are exact in.
  const auto in_double = [](const Tensor& x) {
    std::vector<double> numbers;
    for (std::int64_t h = 0; h < x.shape[1]; h++)
      for (std::int64_t t = 0; t < x.shape[2]; t++)
        for (std::int64_t c = 0; c < x.shape[3]; c++)
          numbers.push_back(x.get(x.offset(0, h, t, c)));
    return numbers;
  };
  std::vector<double> q64 = in_double(q.view), k64 = in_double(k.view), out(q64.size());
  std::vector<double> weights(static_cast<std::size_t>(heads * queries * keys));
  for (std::int64_t first = 0; first < keys; first += head_dim) {
    std::vector<double> unit(k64.size());
    for (std::int64_t h = 0; h < kv_heads; h++)
      for (std::int64_t c = 0; c < std::min(head_dim, keys - first); c++)
        unit[static_cast<std::size_t>((h * keys + first + c) * head_dim + c)] = 1;
    POSENC_CHECK(attend({.q = Tensor::dense(q64.data(), {1, heads, queries, head_dim}),
                         .k = Tensor::dense(k64.data(), {1, kv_heads, keys, head_dim}),
                         .v = Tensor::dense(unit.data(), {1, kv_heads, keys, head_dim}),
                         .queries = Positions::range(keys - queries, queries),
                         .keys = Positions::range(0, keys),
                         .mask = mask},
                        scheme, Plan{}, Tensor::dense(out.data(), {1, heads, queries, head_dim})));
    for (std::int64_t row = 0; row < heads * queries; row++)
      std::copy_n(out.begin() + row * head_dim, std::min(head_dim, keys - first),
                  weights.begin() + row * keys + first);
  }
  for (double& weight : weights)
    if (weight == 0) weight = from_data;
  return weights;
}

// The value that so large a share of the numbers does not pass, 0 where there is none.
double quantile(std::vector<double> values, double share) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return 0;
  const auto at = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// A weight e^−20 of the largest is as good as none, and would take the colours from the others.
constexpr double deepest = 20;

ColourScale logit_scale(const std::vector<double>& logits) {
  const double most = quantile(logits, 1), least = quantile(logits, 0);
  const double end = std::ceil(most - deepest);
  const bool cut = least < end;
  ColourScale scale{.label = cut ? fmt::format("logit, cut at {}", tick_text(end)) : "logit",
                    .column = "logit",
                    .least = cut ? end : least,
                    .most = most,
                    .diverging = true};
  if (scale.least == scale.most) scale.least -= 1, scale.most += 1;
  return scale;
}

// The first queries see few keys, so that their weights are large: one in a hundred may be cut.
ColourScale weight_scale(const std::vector<double>& weights) {
  const double most = quantile(weights, 1), usual = quantile(weights, 0.99);
  const bool cut = usual > 0 && usual < most;
  return {.label = cut ? fmt::format("weight, cut at {:.2g}", usual) : "weight",
          .column = "weight",
          .least = 0,
          .most = cut        ? usual
                  : most > 0 ? most
                             : 1};
}

Expected<std::pair<Vectors, Vectors>> tensors_of(const Options& options) {
  Expected<Vectors> q = read_vectors(options.q, options.dtype);
  if (!q) return std::unexpected(q.error());
  Expected<Vectors> k = read_vectors(options.k, options.dtype);
  if (!k) return std::unexpected(k.error());
  if (k->view.shape[2] < q->view.shape[2])
    return fail("plot scores", "the queries are the last of the keys, so there are no more of them",
                fmt::format("{} of {}", q->view.shape[2], k->view.shape[2]));
  return std::pair{std::move(*q), std::move(*k)};
}

Expected<Figure> draw(Options& options) {
  Encoding& encoding = *options.encoding;
  if (options.q.empty() != options.k.empty())
    return fail("plot scores", "takes both --q and --k, or neither",
                options.q.empty() ? "--k alone" : "--q alone");
  const bool given = !options.q.empty();
  if (given && options.length_given)
    return fail("--length", "is that of random vectors; --q and --k have their own",
                std::to_string(options.length), "leave it away");
  Vectors q, k;
  Geometry of_tensor{.length = options.length};
  if (given) {
    Expected<std::pair<Vectors, Vectors>> both = tensors_of(options);
    if (!both) return std::unexpected(both.error());
    q = std::move(both->first);
    k = std::move(both->second);
    of_tensor = {.heads = q.view.shape[1],
                 .kv_heads = k.view.shape[1],
                 .head_dim = q.view.shape[3],
                 .length = k.view.shape[2]};
  }
  if (options.mask->bidirectional())
    encoding.source().set_where_known("bidirectional", FieldValue(true));
  Expected<Plan> plan = encoding.plan(of_tensor);
  if (!plan) return std::unexpected(plan.error());
  plan->add.reset();  // the embeddings got it
  if (Expected<void> known = check_table(*plan, "plot scores"); !known)
    return std::unexpected(known.error());
  if (plan->relative)
    return fail("plot scores", "vectors by distance are learned, and must be given",
                encoding.name(), "posenc attend --logits takes them");
  if (!given) {
    const std::int64_t heads = encoding.heads(), head_dim = encoding.head_dim();
    if (heads == 0 || head_dim == 0)
      return fail("plot scores", "heads and head_dim must be known", encoding.name(),
                  "say --heads and --head_dim");
    if (Expected<void> good = check_cells(heads * head_dim, options.length, "plot scores"); !good)
      return std::unexpected(good.error());
    const bool same = options.content == "same";
    q = random_vectors(heads, options.length, head_dim, same, options.seed);
    k = random_vectors(heads, options.length, head_dim, same, options.seed + (same ? 0 : 1));
  }
  const std::int64_t heads = q.view.shape[1], queries = q.view.shape[2], keys = k.view.shape[2];
  if (options.head >= heads)
    return fail("--head", fmt::format("must lie in 0 to {}", heads - 1),
                std::to_string(options.head));
  const Expected<Mask> mask = options.mask->over(encoding.source().mask());
  if (!mask) return std::unexpected(mask.error());
  const ContentScheme* content = encoding.source().content();
  POSENC_TRY(all, content ? weights_of(q, k, *content, *mask) : logits_of(q, k, *plan, *mask));
  std::vector<double> logits(all.begin() + options.head * queries * keys,
                             all.begin() + (options.head + 1) * queries * keys);
  std::vector<double> weights = content ? logits : std::vector<double>();
  for (double& logit : logits) {
    if (content) logit = std::log(logit);
    if (std::isinf(logit)) logit = from_data;
  }
  if (!content) weights = weights_of(logits, keys);

  Figure figure;
  figure.columns = 2;
  figure.shared_axes = true;
  figure.square = true;
  figure.height =
      70 + 172 * std::max(0.4, static_cast<double>(queries) / static_cast<double>(keys));
  figure.title = fmt::format("{} of {}, head {} of {}", content ? "Weights" : "Logits and weights",
                             encoding.name(), options.head, heads);
  const std::string words = given                       ? "Queries and keys as given"
                            : options.content == "same" ? "One random vector is every query and "
                                                          "key, so that position alone differs"
                                                        : "Queries and keys are random";
  figure.caption =
      words + (content ? ". Left: the logarithm of the weights, grey where a key has none. Right: "
                         "the weights, each row of which sums to one or less."
                       : ". Left: the logits, grey where a key is hidden. Right: their softmax, "
                         "each row of which sums to one.");
  const auto panel = [&](std::string title, std::vector<double>& values, ColourScale scale) {
    Panel out;
    out.title = std::move(title);
    out.x = {.label = "key (position)", .column = "key_position"};
    out.y = {.label = "query (position)", .column = "query_position", .down = true};
    out.scale = std::move(scale);
    out.matrix = Matrix{.rows = queries,
                        .columns = keys,
                        .values = std::move(values),
                        .first_y = static_cast<double>(keys - queries)};
    figure.panels.push_back(std::move(out));
  };
  panel(content ? "ln weights" : "logits", logits, logit_scale(logits));
  panel("weights", weights, weight_scale(weights));
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--q", options->q,
                 "Queries, .npy [heads, seq, head_dim], not rotated; the last of the keys");
  app.add_option("--k", options->k, "Keys, at positions 0 to seq - 1; heads may share theirs");
  app.add_option("--dtype", options->dtype, "bfloat16: they are uint16 holding bfloat16");
  CLI::Option* length = app.add_option("--length", options->length, "Random queries and keys")
                            ->check(CLI::Range(2, 8192));
  app.add_option("--content", options->content,
                 "random: a vector for each query and key; same: one for all, so that position "
                 "alone differs")
      ->check(CLI::IsMember({"random", "same"}));
  app.add_option("--seed", options->seed, "Of the random vectors");
  app.add_option("--head", options->head, "Which head is drawn")->check(CLI::NonNegativeNumber);
  options->mask.emplace(app);
  options->encoding.emplace(app, "plot scores", "rope", Geometry{.heads = 8, .head_dim = 64}, true);
  return [options, length] {
    options->length_given = length->count() > 0;
    return draw(*options);
  };
}

constexpr std::string_view examples[] = {
    "scores.png --scheme rope --head_dim 64 --length 128 --content same",
    "scores-alibi.png --scheme alibi --heads 8 --head 2 --length 64",
    "scores-forgetting.png --scheme forgetting --gate_bias 3 --heads 8 --length 64",
    "scores-stick.png --scheme stick_breaking --heads 8 --length 64",
    "scores-window.png --model gemma-3-4b --layer 0 --length 64 --window 16",
};

}  // namespace of_scores

extern const Kind scores{"scores",
                         "Logits and attention weights of a head, two maps of queries and keys",
                         of_scores::define, of_scores::examples};

}  // namespace posenc::cli
