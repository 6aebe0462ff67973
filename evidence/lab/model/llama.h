// A pretrained model of the Llama family that runs on posenc's attention: float weights out of a
// GGUF file or a folder, whose layers are RMSNorm, attention, RMSNorm and a gated MLP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/cache.h"
#include "posenc/model.h"

namespace posenc::lab {

// A matrix of weights [out][in], as y = W·x has it.
struct Weights {
  std::int64_t out = 0, in = 0;
  std::vector<float> numbers = {};
  std::vector<float> bias = {};  // [out]; none: empty
};

struct LlamaLayer {
  std::vector<float> attention_norm, mlp_norm;  // [width]
  Weights q, k, v, o, gate, up, down;
};

class Llama {
 public:
  // Errors: those of llama_source(), weights missing or of other shapes than the file says,
  // quantized in a way that floats_of() does not restore; no OpenBLAS on this machine.
  static Expected<Llama> read(const std::string& path, Threads threads);

  const Model& about() const { return model_; }  // what its file says of position
  std::int64_t width() const { return embedding_.in; }
  std::int64_t vocabulary() const { return embedding_.out; }
  std::span<const LlamaLayer> layers() const { return layers_; }
  const LayerGroup& group_of(std::int64_t layer) const;
  Threads threads() const { return threads_; }

  // y [rows][out] = x [rows][in] · Wᵀ + bias.
  void multiply(std::span<const float> x, const Weights& weights, std::span<float> y) const;
  void normalize(std::span<const float> x, std::span<const float> gain, std::span<float> y) const;
  std::span<const float> embedding(std::int32_t token) const;
  // Of each row of `hidden` [rows][width], as Passage::read() gives them: [rows][vocabulary].
  std::vector<float> logits(std::span<const float> hidden) const;
  // Negative log-probabilities in nats of the tokens that follow; `hidden` [next][width] as
  // Passage::read() gives them.
  std::vector<float> losses(std::span<const float> hidden,
                            std::span<const std::int32_t> next) const;

 private:
  Model model_;
  Weights embedding_, head_;  // head_ is empty where the embedding serves both
  std::vector<float> last_norm_;
  std::vector<LlamaLayer> layers_;
  float epsilon_ = 1e-5F;
  Threads threads_;

  friend class Passage;
};

// Of a layer's keys and values, unrotated.
KvCacheOptions cache_options(const Llama& model, std::int64_t layer);

// What a passage shows of each layer to those who look: queries [heads][tokens][head_dim] and keys
// [kv_heads] likewise, before they are rotated, and the positions of the tokens.
struct Glimpse {
  std::int64_t layer;
  Tensor q, k;
  const Plan& plan;
  const Positions& positions;
};

// How much of a text a passage keeps: its first tokens, and as many of the last as leave room for a
// chunk, closed up as StreamingLLM has them (2309.17453): positions are those within the cache.
struct Kept {
  std::int64_t tokens = 0;  // at most in the cache; 0: all
  std::int64_t first = 0;   // of them the first of the text, which attention may rest on
};
// Attention of a chunk's tokens over all that a passage has read. Several processes may read one
// together: each computes some of the chunk's tokens and keeps some of the keys.
class PassageAttention {
 public:
  virtual ~PassageAttention() = default;
  // The tokens of a chunk that this process computes: [first, last).
  struct Share {
    std::int64_t first = 0, last = 0;
  };
  virtual Share share(std::int64_t tokens) const { return {0, tokens}; }
  // Of those tokens: q and out [1, heads, tokens, head_dim] and k and v [1, kv_heads, tokens,
  // head_dim], the rows of a token beside each other in memory. `positions` are those of the whole
  // chunk.
  virtual Expected<void> attend(std::int64_t layer, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Plan& plan, const Positions& positions,
                                const Mask& mask, const Tensor& out) = 0;
  // Forgets tokens of all layers, and closes the gap. Errors: those of KvCache::evict.
  virtual Expected<void> evict(std::int64_t first, std::int64_t last) = 0;
  // The numbers of a chunk's tokens, of those of this process.
  virtual Expected<void> join(std::vector<float>& /*numbers*/, std::int64_t /*tokens*/) {
    return {};
  }
};
// Absent: one process keeps all keys.
using AttentionMaker = std::function<Expected<std::unique_ptr<PassageAttention>>(const Llama&)>;

// A text that runs through a model, a chunk at a time. Keys are cached unrotated, so that every
// chunk may have a plan of its own, as dynamic NTK asks: what stands in the cache was computed
// under the plans of its own time, as in a server.
class Passage {
 public:
  // The plan that a layer's attention has once `length` positions are there.
  using PlanRule = std::function<Expected<Plan>(const LayerGroup& group, std::int64_t length)>;
  using Look = std::function<Expected<void>(const Glimpse&)>;

  // The first token stands at `first`. Errors: a Kept without room for a token.
  static Expected<Passage> begin(const Llama& model, PlanRule rule, std::int64_t first = 0,
                                 Kept kept = {}, const AttentionMaker& attention = {});
  Passage(Passage&&) noexcept;
  ~Passage();

  // What the tokens come to after the last norm, [tokens][width], until the next call; of several
  // processes each has its own.
  Expected<std::span<const float>> read(std::span<const std::int32_t> tokens,
                                        const Look& look = {});
  PassageAttention& attention() const;

 private:
  struct State;
  explicit Passage(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The loss in nats of every token but the first, given those before it that are kept: [tokens − 1].
// `told` hears how many are done. Chunks are of 1024 tokens, or an eighth of what is kept.
Expected<std::vector<float>> losses(const Llama& model, std::span<const std::int32_t> tokens,
                                    const Passage::PlanRule& rule, std::int64_t first = 0,
                                    const std::function<void(std::int64_t)>& told = {},
                                    Kept kept = {}, const AttentionMaker& attention = {});

}  // namespace posenc::lab
