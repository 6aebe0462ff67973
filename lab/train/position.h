// A scheme as a decoder uses it: compiled for a length, with what it learns among the decoder's parameters. All layers
// share what a scheme learns, as T5's do; forgetting's gates, which read the layer, are the decoder's.
#pragma once

#include <string_view>
#include <variant>

#include "lab/train/parameters.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"

namespace posenc::lab {

using AnyScheme = std::variant<Scheme, ContentScheme>;

// "rope rope_type=yarn factor=8": a name of `posenc schemes`, and fields. Errors: those of make_scheme and set_field.
Expected<AnyScheme> parse_scheme(std::string_view text);

class Position {
 public:
  // `geometry.length` is the trained length: what a learned table has rows for, and CoPE positions. Fields that say how
  // long a model was trained keep their defaults unless the scheme's text sets them.
  static Expected<Position> make(AnyScheme scheme, const Geometry& geometry,
                                 Parameters& parameters);

  // Another scheme that learns nothing in its place: a rotation scaled otherwise. Errors: one that learns.
  Expected<void> replace(AnyScheme scheme);
  // To be called before a forward pass of texts of this length, with parameters as they are by now.
  Expected<void> prepare(std::int64_t length);

  bool has_gates() const;
  const Plan& plan() const { return plan_; }
  // The positions that `add` is given: a learned table's last row stands for all beyond.
  Expected<Positions> clamped(const Positions& positions) const;

  // `gates`: log gates [batch][heads][keys] of forgetting.
  Expected<void> attend(const AttentionInputs& in, const Tensor& gates, const Tensor& out);
  // Writes the gradients of q, k, v and gates, and adds to those of what the scheme learns.
  Expected<void> attend_backward(const AttentionInputs& in, const Tensor& gates,
                                 const Tensor& out_gradient, const AttentionGradients& wanted,
                                 const Tensor& gate_gradient);
  // Adds to the learned table's gradient; the embedding's becomes what add() makes of it.
  Expected<void> add_backward(const Positions& positions, const Tensor& gradient);

 private:
  void learn(Parameters& parameters);
  Expected<void> content_backward(const AttentionInputs& in, const Tensor& out_gradient,
                                  ContentGradients wanted);

  AnyScheme scheme_;
  Geometry geometry_;
  Plan plan_;
  std::vector<Parameter*> learned_;  // in the order of learn()
};

}  // namespace posenc::lab
