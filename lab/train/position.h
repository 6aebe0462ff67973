// A scheme as a decoder uses it: compiled for a length, with what it learns among the decoder's parameters. All layers
// share what a scheme learns, as T5's do; what tokens say to it (gates, PaTH's factors) reads the layer, and is the decoder's.
#pragma once

#include <string_view>
#include <variant>

#include "lab/train/content_rope.h"
#include "lab/train/parameters.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"

namespace posenc::lab {

using AnyScheme = std::variant<Scheme, ContentScheme, ContentRope>;

// "rope rope_type=yarn factor=8": a name of `posenc schemes` or of ContentRope, and fields. Errors: those of make_scheme and
// set_field.
Expected<AnyScheme> parse_scheme(std::string_view text);

// What tokens say to a scheme that reads them; the rest is absent.
struct Said {
  Tensor log_gates = {};      // [batch][heads][keys]: of forgetting
  Tensor channel_gates = {};  // [batch][heads][keys][head_dim]: of Wall
  Tensor w = {}, beta = {};   // [batch][heads][keys][head_dim], [batch][heads][keys]: of PaTH
  SaidAngles angles = {};     // of rotations by content
  Tensor profiles =
      {};         // [batch][heads][queries][u]: of profiles; of a ramp, before their softplus
  Tensor p = {};  // [batch][heads][tokens][8]: of GRAPE-AP
};
enum class Saying { nothing, gates, channel_gates, factors, angles, profiles, p };

// Numbers of a token in what its layer's input is projected to, and how the projection begins.
struct SaidRow {
  std::int64_t numbers = 0;
  std::int64_t biased = 0;        // the last of them, with a bias each
  double deviation = 1;           // of the weights, times that of other projections
  double middle = 0, spread = 0;  // of the biases
};

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

  Saying saying() const;
  SaidRow said_row() const;
  // The numbers of [text][token][said_row().numbers] as the scheme takes them.
  Said views(float* numbers, std::int64_t texts, std::int64_t length) const;
  const Plan& plan() const { return plan_; }
  // The positions that `add` is given: a learned table's last row stands for all beyond.
  Expected<Positions> clamped(const Positions& positions) const;

  Expected<void> attend(const AttentionInputs& in, const Said& said, const Tensor& out);
  // Writes the gradients of q, k, v and of what was said, and adds to those of what the scheme learns.
  Expected<void> attend_backward(const AttentionInputs& in, const Said& said,
                                 const Tensor& out_gradient, const AttentionGradients& wanted,
                                 const Said& said_gradient);
  // Adds to the learned table's gradient; the embedding's becomes what add() makes of it.
  Expected<void> add_backward(const Positions& positions, const Tensor& gradient);

 private:
  Expected<void> hear(const AttentionInputs& in, const Said& said);
  void learn(Parameters& parameters);
  Expected<void> mixture_backward(const AttentionInputs& in, const Tensor& out_gradient,
                                  AttentionGradients& wanted);
  Expected<void> profiles_backward(const AttentionInputs& in, const Said& said,
                                   const Tensor& out_gradient, AttentionGradients& wanted,
                                   const Said& said_gradient);
  Expected<void> transformer_xl_backward(const AttentionInputs& in, const Tensor& out_gradient,
                                         AttentionGradients& wanted);
  Expected<void> content_backward(const AttentionInputs& in, const Tensor& out_gradient,
                                  ContentGradients wanted);
  Expected<void> grape_ap_backward(const AttentionInputs& in, const Said& said,
                                   const Tensor& out_gradient, const AttentionGradients& wanted,
                                   const Said& said_gradient);

  AnyScheme scheme_;
  Geometry geometry_;
  Plan plan_;
  std::vector<float> p_keys_;        // of GRAPE-AP, as its keys have them
  AngleForm form_;                   // of rotations by content
  std::vector<Parameter*> learned_;  // in the order of learn()
};

}  // namespace posenc::lab
