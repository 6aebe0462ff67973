#include "evidence/lab/model/llama.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "evidence/bench/harness/blas.h"
#include "evidence/lab/model/source.h"
#include "posenc/bench.h"
#include "posenc/cache.h"
#include "posenc/files.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

using detail::Blas;

std::size_t index(std::int64_t count) { return static_cast<std::size_t>(count); }

// Reads tensors by name; after the first error every further one is empty.
class Weigher {
 public:
  Weigher(std::span<const StoredTensor> tensors, std::string_view where)
      : tensors_(tensors), where_(where) {}

  // 0 where there is no such tensor.
  std::int64_t rows(const std::string& name) const {
    const StoredTensor* tensor = find_tensor(tensors_, name + ".weight");
    return tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
  }
  Weights matrix(const std::string& name, std::int64_t out, std::int64_t in) {
    Weights made{out, in, numbers(name + ".weight", {out, in}), {}};
    if (find_tensor(tensors_, name + ".bias") != nullptr) made.bias = vector(name + ".bias", out);
    return made;
  }
  std::vector<float> vector(const std::string& name, std::int64_t size) {
    return numbers(name, {size});
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::vector<float> numbers(const std::string& name, const std::vector<std::int64_t>& shape) {
    if (error_) return {};
    const StoredTensor* tensor = find_tensor(tensors_, name);
    if (tensor == nullptr) return refuse(name, "is missing", "");
    if (tensor->shape != shape)
      return refuse(name, "must have the shape that the file's own numbers ask for",
                    std::to_string(tensor->shape.size()) + " axes, " +
                        std::to_string(tensor->shape.empty() ? 0 : tensor->shape[0]) + " rows");
    Expected<std::vector<float>> made = floats_of(*tensor);
    if (made) return std::move(*made);
    error_ = made.error();
    error_->where = std::string(where_) + ": " + error_->where;
    return {};
  }
  std::vector<float> refuse(const std::string& name, std::string_view rule, std::string_view got) {
    error_ =
        fail(std::string(where_) + ": " + name, rule, got, "give all weights of a Llama").error();
    return {};
  }

  std::span<const StoredTensor> tensors_;
  std::string_view where_;
  std::optional<Error> error_;
};

const Blas* blas() {
  static const Blas* const found = Blas::found(bench_machine().instruction_set);
  return found;
}

float silu(float x) { return x / (1 + std::exp(-x)); }

}  // namespace

Expected<Llama> Llama::read(const std::string& path, Threads threads) {
  if (blas() == nullptr)
    return fail("lab", "needs OpenBLAS for its matrix products", "none on this machine",
                "apt-get install libopenblas0-pthread");
  POSENC_TRY(source, llama_source(path));
  const TensorNames& names = source.names;
  Llama made;
  made.threads_ = threads;
  made.model_ = std::move(source.model);
  made.epsilon_ = static_cast<float>(source.epsilon);
  Weigher weigher(source.tensors, path);
  const std::int64_t width = source.width, hidden = source.hidden,
                     vocabulary = weigher.rows(std::string(names.embedding));
  const auto layer_name = [&](std::int64_t layer, std::string_view of) {
    return std::string(names.layers) + std::to_string(layer) + "." + std::string(of);
  };
  made.embedding_ = weigher.matrix(std::string(names.embedding), vocabulary, width);
  if (weigher.rows(std::string(names.head)) > 0)
    made.head_ = weigher.matrix(std::string(names.head), vocabulary, width);
  made.last_norm_ = weigher.vector(std::string(names.last_norm) + ".weight", width);
  std::int64_t count = 0;
  for (const LayerGroup& group : made.model_.groups) count += std::ssize(group.layers);
  for (std::int64_t layer = 0; layer < count && !weigher.error(); ++layer) {
    const Geometry& sizes = made.group_of(layer).geometry;
    const std::int64_t queries = sizes.heads * sizes.head_dim,
                       keys = (sizes.kv_heads > 0 ? sizes.kv_heads : sizes.heads) * sizes.head_dim;
    const auto matrix = [&](std::string_view name, std::int64_t out, std::int64_t in) {
      return weigher.matrix(layer_name(layer, name), out, in);
    };
    const auto norm = [&](std::string_view name) {
      return weigher.vector(layer_name(layer, name) + ".weight", width);
    };
    made.layers_.push_back({norm(names.attention_norm), norm(names.mlp_norm),
                            matrix(names.q, queries, width), matrix(names.k, keys, width),
                            matrix(names.v, keys, width), matrix(names.o, width, queries),
                            matrix(names.gate, hidden, width), matrix(names.up, hidden, width),
                            matrix(names.down, width, hidden)});
  }
  if (weigher.error()) return std::unexpected(*weigher.error());
  return made;
}

const LayerGroup& Llama::group_of(std::int64_t layer) const {
  const LayerGroup* group = find_group(model_, layer, Stack::text);
  return group != nullptr ? *group : model_.groups.front();
}

void Llama::multiply(std::span<const float> x, const Weights& weights, std::span<float> y) const {
  const std::int64_t rows = std::ssize(x) / weights.in;
  if (rows == 0) return;
  blas()->multiply({x.data()}, {weights.numbers.data(), true}, y.data(), rows, weights.out,
                   weights.in, threads_.count);
  if (weights.bias.empty()) return;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < weights.out; ++j)
      y[index(i * weights.out + j)] += weights.bias[index(j)];
}

void Llama::normalize(std::span<const float> x, std::span<const float> gain,
                      std::span<float> y) const {
  const std::size_t size = gain.size();
  for (std::size_t row = 0; row < x.size(); row += size) {
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i) squares += static_cast<double>(x[row + i]) * x[row + i];
    const float scale =
        1 / std::sqrt(static_cast<float>(squares / static_cast<double>(size)) + epsilon_);
    for (std::size_t i = 0; i < size; ++i) y[row + i] = x[row + i] * scale * gain[i];
  }
}

std::span<const float> Llama::embedding(std::int32_t token) const {
  return std::span(embedding_.numbers).subspan(index(token * width()), index(width()));
}

std::vector<float> Llama::logits(std::span<const float> hidden) const {
  const Weights& head = head_.numbers.empty() ? embedding_ : head_;
  std::vector<float> made(hidden.size() / index(head.in) * index(head.out));
  multiply(hidden, head, made);
  return made;
}

std::vector<float> Llama::losses(std::span<const float> hidden,
                                 std::span<const std::int32_t> next) const {
  // So many rows of logits stand in a cache of the second level's size times a few.
  constexpr std::int64_t most_rows = 64;
  std::vector<float> made;
  made.reserve(next.size());
  for (std::int64_t from = 0; from < std::ssize(next); from += most_rows) {
    const std::int64_t rows = std::min(most_rows, std::ssize(next) - from);
    std::vector<float> found = logits(hidden.subspan(index(from * width()), index(rows * width())));
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto row = std::span(found).subspan(index(i * vocabulary()), index(vocabulary()));
      const float most = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const float logit : row) sum += std::exp(logit - most);
      const float said = row[index(next[index(from + i)])];
      made.push_back(static_cast<float>(std::log(sum) + most - said));
    }
  }
  return made;
}

// --- a text on its way through -------------------------------------------------------------------

namespace {

// Of one process.
class CachedAttention : public PassageAttention {
 public:
  static Expected<std::unique_ptr<PassageAttention>> of(const Llama& model) {
    auto made = std::make_unique<CachedAttention>();
    made->threads_ = model.threads();
    for (std::int64_t layer = 0; layer < std::ssize(model.layers()); ++layer) {
      POSENC_TRY(cache, KvCache::make(cache_options(model, layer)));
      made->sequences_.push_back(cache.add());
      made->caches_.push_back(std::move(cache));
    }
    return made;
  }
  Expected<void> attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Plan& plan, const Positions& positions, const Mask& mask,
                        const Tensor& out) override {
    KvCache& cache = caches_[index(layer)];
    const std::span<const KvCache::Sequence> sequence(&sequences_[index(layer)], 1);
    POSENC_CHECK(cache.append(sequence, k, v, plan, positions, threads_));
    return cache.attend(sequence, q, plan, mask, out, threads_);
  }
  Expected<void> evict(std::int64_t first, std::int64_t last) override {
    for (std::size_t layer = 0; layer < caches_.size(); ++layer)
      POSENC_CHECK(caches_[layer].evict(sequences_[layer], first, last, KvCache::Gap::close));
    return {};
  }

 private:
  std::vector<KvCache> caches_;               // [layer]
  std::vector<KvCache::Sequence> sequences_;  // [layer]
  Threads threads_;
};

}  // namespace

KvCacheOptions cache_options(const Llama& model, std::int64_t layer) {
  const Geometry& sizes = model.group_of(layer).geometry;
  return {.kv_heads = sizes.kv_heads > 0 ? sizes.kv_heads : sizes.heads,
          .head_dim = sizes.head_dim,
          .page_size = 256};
}

struct Passage::State {
  const Llama& model;
  PlanRule rule;
  std::unique_ptr<PassageAttention> shared = {};
  Kept kept = {};
  std::int64_t cached = 0;  // tokens
  std::int64_t next = 0;    // position
  std::vector<float> x = {}, normed = {}, q = {}, k = {}, v = {}, attended = {}, gate = {}, up = {};

  Expected<void> attention(std::int64_t layer, const Positions& chunk, std::int64_t tokens,
                           const Plan& plan, const Look& look);
  void mlp(const LlamaLayer& layer);
  Expected<void> make_room(std::int64_t tokens);
};

Passage::Passage(std::unique_ptr<State> state) : state_(std::move(state)) {}
Passage::Passage(Passage&&) noexcept = default;
Passage::~Passage() = default;

PassageAttention& Passage::attention() const { return *state_->shared; }

Expected<Passage> Passage::begin(const Llama& model, PlanRule rule, std::int64_t first, Kept kept,
                                 const AttentionMaker& attention) {
  if (kept.tokens < 0 || kept.first < 0 || (kept.tokens > 0 && kept.first >= kept.tokens))
    return fail("lab", "a cache must hold a token more than the first ones that stay",
                std::to_string(kept.tokens) + " with " + std::to_string(kept.first) + " that stay",
                "keep more");
  auto state = std::make_unique<State>(model, std::move(rule));
  state->next = first;
  state->kept = kept;
  POSENC_TRY(made, attention ? attention(model) : CachedAttention::of(model));
  state->shared = std::move(made);
  return Passage(std::move(state));
}

Expected<void> Passage::State::attention(std::int64_t layer, const Positions& chunk,
                                         std::int64_t tokens, const Plan& plan, const Look& look) {
  const LlamaLayer& weights = model.layers()[index(layer)];
  const LayerGroup& group = model.group_of(layer);
  const std::int64_t head_dim = group.geometry.head_dim, heads = group.geometry.heads,
                     kv_heads = weights.k.out / head_dim;
  const auto seen = [&](std::vector<float>& numbers, std::int64_t head_count) {
    return Tensor::dense(numbers.data(), {1, tokens, head_count, head_dim}).swapped(1, 2);
  };
  q.resize(index(tokens * weights.q.out));
  k.resize(index(tokens * weights.k.out));
  v.resize(k.size());
  attended.resize(q.size());
  model.normalize(x, weights.attention_norm, normed);
  model.multiply(normed, weights.q, q);
  model.multiply(normed, weights.k, k);
  model.multiply(normed, weights.v, v);
  const Tensor queries = seen(q, heads), keys = seen(k, kv_heads);
  if (look) POSENC_CHECK(look({layer, queries, keys, plan, chunk}));
  const Mask mask{.window = group.window.value_or(0)};
  POSENC_CHECK(shared->attend(layer, queries, keys, seen(v, kv_heads), plan, chunk, mask,
                              seen(attended, heads)));
  model.multiply(attended, weights.o, normed);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += normed[i];
  return {};
}

void Passage::State::mlp(const LlamaLayer& layer) {
  const std::size_t size = x.size() / layer.mlp_norm.size() * index(layer.gate.out);
  gate.resize(size);
  up.resize(size);
  model.normalize(x, layer.mlp_norm, normed);
  model.multiply(normed, layer.gate, gate);
  model.multiply(normed, layer.up, up);
  for (std::size_t i = 0; i < size; ++i) gate[i] = silu(gate[i]) * up[i];
  model.multiply(gate, layer.down, normed);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += normed[i];
}

Expected<void> Passage::State::make_room(std::int64_t tokens) {
  if (kept.tokens == 0 || cached + tokens <= kept.tokens) return {};
  const std::int64_t gone = std::clamp<std::int64_t>(
      cached + tokens - kept.tokens, 0, std::max<std::int64_t>(0, cached - kept.first));
  POSENC_CHECK(shared->evict(kept.first, kept.first + gone));
  cached -= gone;
  next -= gone;
  return {};
}

Expected<std::span<const float>> Passage::read(std::span<const std::int32_t> tokens,
                                               const Look& look) {
  State& at = *state_;
  const Llama& model = at.model;
  const std::int64_t count = std::ssize(tokens);
  POSENC_CHECK(at.make_room(count));
  const std::int64_t length = at.next + count;
  const Positions chunk = Positions::range(at.next, count);
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= model.vocabulary())
      return fail("lab", "a token must be of the model's vocabulary", std::to_string(token));
  const PassageAttention::Share own = at.shared->share(count);
  at.x.clear();
  for (const std::int32_t token : tokens.subspan(index(own.first), index(own.last - own.first))) {
    const std::span<const float> row = model.embedding(token);
    at.x.insert(at.x.end(), row.begin(), row.end());
  }
  at.normed.resize(at.x.size());
  const LayerGroup* of = nullptr;
  Expected<Plan> plan = Plan{};
  for (std::int64_t layer = 0; layer < std::ssize(model.layers()); ++layer) {
    const LayerGroup& group = model.group_of(layer);
    if (&group != of) plan = at.rule(*(of = &group), length);
    if (!plan) return std::unexpected(plan.error());
    POSENC_CHECK(at.attention(layer, chunk, own.last - own.first, *plan, look));
    at.mlp(model.layers()[index(layer)]);
  }
  at.cached += count;
  at.next = length;
  model.normalize(at.x, model.last_norm_, at.normed);
  return at.normed;
}

Expected<std::vector<float>> losses(const Llama& model, std::span<const std::int32_t> tokens,
                                    const Passage::PlanRule& rule, std::int64_t first,
                                    const std::function<void(std::int64_t)>& told, Kept kept,
                                    const AttentionMaker& attention) {
  constexpr std::int64_t most = 1024;
  const std::int64_t chunk =
      kept.tokens == 0 ? most : std::clamp<std::int64_t>((kept.tokens - kept.first) / 8, 1, most);
  POSENC_TRY(passage, Passage::begin(model, rule, first, kept, attention));
  std::vector<float> made;
  for (std::int64_t at = 0; at + 1 < std::ssize(tokens); at += chunk) {
    const std::int64_t count = std::min(chunk, std::ssize(tokens) - 1 - at);
    POSENC_TRY(hidden, passage.read(tokens.subspan(index(at), index(count))));
    const PassageAttention::Share own = passage.attention().share(count);
    std::vector<float> more = model.losses(
        hidden, tokens.subspan(index(at + 1 + own.first), index(own.last - own.first)));
    POSENC_CHECK(passage.attention().join(more, count));
    made.insert(made.end(), more.begin(), more.end());
    if (told) told(std::ssize(made));
  }
  return made;
}

}  // namespace posenc::lab
