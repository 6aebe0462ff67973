// What one head makes of queries and keys: its logits, and beside them the weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/mask.h"
#include "cli/arguments/npy.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/layout.h"
#include "cli/figures/kind.h"
#include "cli/figures/random_numbers.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_scores {

struct Options {
  std::string q, k, dtype, content = "random";
  std::int64_t length = 64, head = 0;
  std::uint64_t seed = 42;
  bool length_given = false, random_learned = false;
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
  POSENC_TRY(file, read_array(path));
  POSENC_TRY(view, tensor_of(file, dtype, path));
  const Tensor whole = view.with_rank(4);
  if (view.rank < 2 || whole.shape[0] != 1 || whole.size() == 0)
    return fail(path, "must be one sequence, [heads, seq, head_dim] or [seq, head_dim]",
                shape_text(view), "save one sequence of the batch");
  return Vectors{std::move(file), {}, whole};
}

// Masked logits of all heads, [head][query][key], by a plan or by a scheme that reads the content;
// and the weights of the latter. The values of a head do not matter to them.
struct Scores {
  std::vector<double> logits, weights;
};
// places: of keys, of which queries are the last. profiles: what tokens say to tables by distance,
// empty where the plan has none.
Expected<Scores> scores_of(const Vectors& q, const Vectors& k, const Plan& plan,
                           const ContentScheme* content, const Mask& mask, const Positions& places,
                           const ProfileTensors& profiles) {
  const std::int64_t heads = q.view.shape[1], queries = q.view.shape[2], keys = k.view.shape[2];
  POSENC_CHECK(check_cells(heads * queries, keys, "plot scores"));
  const auto cells = static_cast<std::size_t>(heads * queries * keys);
  Scores scores{.logits = std::vector<double>(cells),
                .weights = std::vector<double>(content ? cells : 0)};
  const auto view = [&](std::vector<double>& rows) {
    return Tensor::dense(rows.data(), {1, heads, queries, keys});
  };
  POSENC_TRY(out, make_array(q.made.empty() ? q.file.type : NpyType::f64,
                             {1, heads, queries, q.view.shape[3]}));
  Tensor outputs = q.view;
  outputs.data = out.data.data();
  AttentionInputs in{q.view, k.view, k.view, places.slice(0, keys - queries, queries),
                     places, mask};
  in.profiles = profiles;
  if (content) {
    POSENC_CHECK(
        attend_reference(in, *content, plan, outputs, view(scores.logits), view(scores.weights)));
  } else {
    POSENC_CHECK(attend_reference(in, plan, outputs, view(scores.logits)));
  }
  return scores;
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
  POSENC_TRY(q, read_vectors(options.q, options.dtype));
  POSENC_TRY(k, read_vectors(options.k, options.dtype));
  if (k.view.shape[2] < q.view.shape[2])
    return fail("plot scores", "the queries are the last of the keys, so there are no more of them",
                fmt::format("{} of {}", q.view.shape[2], k.view.shape[2]));
  return std::pair{std::move(q), std::move(k)};
}

// Position vectors join random queries and keys alike, as if the projections behind them were the
// identity.
Expected<void> add_positions_to(Vectors& tokens, const Plan& plan) {
  const std::int64_t length = tokens.view.shape[2], width = tokens.view.shape[3];
  POSENC_TRY(added, vectors(plan, Positions::range(0, length), width, "plot scores"));
  for (std::size_t i = 0; i < tokens.made.size(); i++)
    tokens.made[i] = plan.add->embedding_scale * tokens.made[i] + added[i % added.size()];
  return {};
}

// Queries and keys that are drawn, and where asked what the scheme has learned.
Expected<std::pair<Vectors, Vectors>> random_tensors(const Options& options,
                                                     const Encoding& encoding, Plan& plan,
                                                     std::optional<ContentScheme>& content) {
  const std::int64_t heads = encoding.heads(), head_dim = encoding.head_dim();
  if (heads == 0 || head_dim == 0)
    return fail("plot scores", "heads and head_dim must be known", encoding.name(),
                "say --heads and --head_dim");
  POSENC_CHECK(check_cells(heads * head_dim, options.length, "plot scores"));
  const Words words = words_named(options.content);
  if (options.random_learned) {
    fill_learned(plan, options.seed, heads, head_dim);
    if (content)
      randomize(*content, {.seed = options.seed + 2,
                           .heads = heads,
                           .length = options.length,
                           .head_dim = head_dim,
                           .alike = words != Words::random});
  }
  const auto draw = [&](bool keys) -> Expected<Vectors> {
    Vectors tokens{.made =
                       random_vectors(words, keys, options.seed, heads, options.length, head_dim)};
    tokens.view = Tensor::dense(tokens.made.data(), {1, heads, options.length, head_dim});
    if (plan.add && !encoding.of_model() && encoding.width() == head_dim)
      POSENC_CHECK(add_positions_to(tokens, plan));
    return tokens;
  };
  POSENC_TRY(q, draw(false));
  POSENC_TRY(k, draw(true));
  return std::pair{std::move(q), std::move(k)};
}

// Where tokens stand: the patches of the picture that the plan is for, else one behind the other.
Expected<Positions> places(const Plan& plan, const Geometry& of, std::int64_t tokens) {
  if (of.grid_height == 0) return Positions::range(0, tokens);
  const std::int64_t patches = of.grid_height * of.grid_width;
  if (tokens != patches)
    return fail("plot scores", "a picture has as many tokens as patches",
                fmt::format("{} for {} x {}", tokens, of.grid_height, of.grid_width),
                "say no --length, or another --grid");
  if (plan.rotate && plan.rotate->frequencies.axes == 2)
    return Positions::grid(std::array{of.grid_height, of.grid_width});
  POSENC_TRY(grid, grid_positions(of.grid_height, of.grid_width));
  return grid.queries;
}

std::string words_of(const Options& options, bool given) {
  if (given) return "Queries and keys as given";
  switch (words_named(options.content)) {
    case Words::same:
      return "One random vector is every query and key, so that position alone differs";
    case Words::alike:
      return "One random query and one random key stand at every place, so that position alone "
             "differs";
    case Words::equal: return "Queries and keys are ones, so that position alone differs";
    case Words::random: break;
  }
  return "Queries and keys are random";
}

Expected<Figure> draw(Options& options) {
  Encoding& encoding = *options.encoding;
  if (options.q.empty() != options.k.empty())
    return fail("plot scores", "takes both --q and --k, or neither",
                options.q.empty() ? "--k alone" : "--q alone");
  const bool given = !options.q.empty();
  if (given && options.length_given)
    return fail("--length", "is that of random vectors; --q and --k have their own",
                std::to_string(options.length), "drop the flag");
  if (given && options.random_learned)
    return fail("--random_learned", "goes with random queries and keys", "--q", "drop the flag");
  Vectors q, k;
  Geometry of_tensor{.length = options.length};
  if (given) {
    POSENC_TRY(both, tensors_of(options));
    std::tie(q, k) = std::move(both);
    of_tensor = {.heads = q.view.shape[1],
                 .kv_heads = k.view.shape[1],
                 .head_dim = q.view.shape[3],
                 .length = k.view.shape[2]};
  }
  if (options.mask->bidirectional())
    encoding.source().set_where_known("bidirectional", FieldValue(true));
  if (options.random_learned)
    encoding.source().fill_learned([&options](Scheme& scheme, const Geometry& geometry) {
      fill_learned(scheme, options.seed, geometry);
    });
  POSENC_TRY(plan, encoding.plan(of_tensor));
  const Geometry geometry = encoding.source().compiled_for();
  if (!options.length_given && geometry.grid_height > 0)
    options.length = geometry.grid_height * geometry.grid_width;
  std::optional<ContentScheme> content;
  if (encoding.source().content()) content = *encoding.source().content();
  if (!given) {
    POSENC_TRY(both, random_tensors(options, encoding, plan, content));
    std::tie(q, k) = std::move(both);
  }
  plan.add.reset();  // the embeddings got it
  POSENC_CHECK(check_table(plan, "plot scores"));
  std::vector<double> said;
  ProfileTensors profiles;
  if (plan.relative && plan.relative->profiles > 0) {
    if (!options.random_learned)
      return fail("plot scores", "the encoding must not read profiles of the tokens",
                  encoding.name(),
                  "posenc attend --logits takes them, --random_learned draws some");
    const std::int64_t each = plan.relative->profiles, heads = encoding.heads();
    said = normals(options.seed + 3, heads * options.length * each);
    const Tensor view = Tensor::dense(said.data(), {1, heads, options.length, each});
    (plan.relative->uses_key ? profiles.query : profiles.key) = view;
  }
  if (plan.relative && !options.random_learned)
    return fail("plot scores", "vectors by distance are learned, and must be given",
                encoding.name(), "posenc attend --logits takes them, --random_learned draws some");
  const std::int64_t heads = q.view.shape[1], queries = q.view.shape[2], keys = k.view.shape[2];
  if (options.head >= heads)
    return fail("--head", fmt::format("must lie in 0 to {}", heads - 1),
                std::to_string(options.head));
  POSENC_TRY(mask, options.mask->over(encoding.source().mask()));
  POSENC_TRY(at, places(plan, geometry, keys));
  POSENC_TRY(all, scores_of(q, k, plan, content ? &*content : nullptr, mask, at, profiles));
  const auto of_head = [&](const std::vector<double>& rows) {
    return std::vector<double>(rows.begin() + options.head * queries * keys,
                               rows.begin() + (options.head + 1) * queries * keys);
  };
  std::vector<double> logits = of_head(all.logits);
  for (double& logit : logits)
    if (std::isinf(logit)) logit = from_data;
  std::vector<double> weights = content ? of_head(all.weights) : weights_of(logits, keys);
  if (content) std::ranges::replace(weights, 0.0, from_data);

  Figure figure{.columns = 2, .shared_axes = true, .square = true};
  figure.height =
      70 + 172 * std::max(0.4, static_cast<double>(queries) / static_cast<double>(keys));
  figure.title =
      fmt::format("Logits and weights of {}, head {} of {}", encoding.name(), options.head, heads);
  figure.caption =
      words_of(options, given) + (options.random_learned ? ", and so is what is learned" : "") +
      ". Left: the logits, grey where a key is hidden" +
      (content ? " or has no weight; of a scheme without a softmax, the logarithms of "
                 "the weights. Right: the weights, each row of which sums to one or less."
               : ". Right: their softmax, each row of which sums to one.");
  const auto panel = [&](std::string title, std::vector<double>& values, ColourScale scale) {
    Panel out{.title = std::move(title)};
    const std::string_view unit = geometry.grid_height > 0 ? "patch" : "position";
    out.x = {.label = fmt::format("key ({})", unit), .column = "key_position"};
    out.y = {.label = fmt::format("query ({})", unit), .column = "query_position", .down = true};
    out.scale = std::move(scale);
    out.matrix = Matrix{.rows = queries,
                        .columns = keys,
                        .values = std::move(values),
                        .first_y = static_cast<double>(keys - queries)};
    figure.panels.push_back(std::move(out));
  };
  panel("logits", logits, logit_scale(logits));
  panel("weights", weights, weight_scale(weights));
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--q", options->q,
                 "Queries, .npy [heads, seq, head_dim], not rotated; the last of the keys")
      ->type_name("FILE");
  app.add_option("--k", options->k, "Keys, at positions 0 to seq - 1; heads may share theirs")
      ->type_name("FILE");
  app.add_option("--dtype", options->dtype, "bfloat16: they are uint16 holding bfloat16")
      ->type_name("TYPE");
  CLI::Option* length = app.add_option("--length", options->length,
                                       "Random queries and keys; of a --grid its patches")
                            ->check(CLI::Range(2, 8192));
  app.add_option("--content", options->content,
                 "random; alike: position alone differs; same: one vector for all; equal: ones")
      ->check(CLI::IsMember({"random", "alike", "same", "equal"}));
  app.add_option("--seed", options->seed, "Of the random numbers");
  app.add_flag("--random_learned", options->random_learned,
               "What is learned and not given is random too");
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
    "scores-cope.png --scheme cope --random_learned --heads 8 --length 64",
    "scores-stick.png --scheme stick_breaking --heads 8 --length 64",
    "scores-window.png --model gemma-3-4b --layer 0 --length 64 --window 16",
};

}  // namespace of_scores

extern const Kind scores{"scores",
                         "Logits and attention weights of a head, two maps of queries and keys",
                         of_scores::define, of_scores::examples};

}  // namespace posenc::cli
