// A small decoder that learns with any scheme: RMSNorm, attention, RMSNorm and an MLP of relu² in
// each layer, all around a residual stream. Its backward pass is written by hand, on
// attend_backward of posenc. One thread, the same bits for a seed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "evidence/lab/train/position.h"

namespace posenc::lab {

struct DecoderShape {
  std::int64_t vocabulary = 256, width = 128, layers = 3, heads = 4, hidden = 512;
  std::int64_t trained_length = 64;
  bool tied = true;                // the embedding is the head too
  std::int64_t window = 0;         // of layers that have positions; 0: none
  std::int64_t without_every = 0;  // every such layer has no position and no window; 0: none
  bool causal = true;
};

// Texts of one length. A target below 0 is not scored.
struct Batch {
  std::int64_t texts = 0, length = 0;
  std::vector<std::int32_t> tokens = {}, targets = {};  // [text][position]
  Positions positions = {};                             // of none: 0, 1, …
};

class Decoder {
 public:
  // Weights depend on the seed and on what they are called: models with other schemes share all
  // that they have in common. Errors: a shape that the scheme refuses, no OpenBLAS on this machine.
  static Expected<Decoder> make(const DecoderShape& shape, AnyScheme scheme, std::uint64_t seed);
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  // The mean loss of the scored targets in nats.
  Expected<double> loss(const Batch& batch);
  // The same, and the gradient by every parameter, written.
  Expected<double> learn(const Batch& batch);
  // The logits [text][position][token] of a batch, whose targets are not read; until the next call.
  Expected<std::span<const float>> logits(const Batch& batch);
  // Of the last batch, [text][position]: nats (0 where not scored), and whether the likeliest token
  // was the target.
  std::span<const float> losses() const;
  std::span<const std::uint8_t> hits() const;
  // The residual stream of the last batch before layer `at`, [text][position][channel]; behind the
  // last for at = layers.
  std::span<const float> residual(std::int64_t at) const;

  Parameters& parameters();
  Position& position();

 private:
  struct State;
  explicit Decoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace posenc::lab
