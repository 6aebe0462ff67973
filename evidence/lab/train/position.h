// A scheme as a decoder uses it: compiled for a length, with what it learns among the decoder's
// parameters. All layers share what a scheme learns, as T5's do; what tokens say to it (gates,
// PaTH's factors) reads the layer, and is the decoder's.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "evidence/lab/train/content_rope.h"
#include "evidence/lab/train/parameters.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"

namespace posenc::lab {

constexpr double norm_epsilon = 1e-5;  // beside the mean square that a norm divides by

using AnyScheme = std::variant<Scheme, ContentScheme, ContentRope>;

// "rope rope_type=yarn factor=8": a name of `posenc schemes` or of ContentRope, and fields. Errors:
// those of make_scheme and set_field.
Expected<AnyScheme> parse_scheme(std::string_view text);

// What tokens say to a scheme that reads them; the rest is absent. tables: of the scheme's, those
// that have a projection of their own, in order. profiles: [batch][heads][queries][u]; of a ramp,
// before their softplus.
struct Said {
  std::vector<Tensor> tables = {};
  SaidAngles angles = {};
  Tensor profiles = {};
};
enum class Saying { nothing, tables, angles, profiles };

// Numbers of a token in the projection of its layer's input, in rows, and what is made of these.
struct SaidPart {
  std::int64_t numbers = 0, columns = 1;
  bool biased = false;  // with a bias each
  Activation activation = Activation::none;
};
// All of a token, and how the projection begins.
struct SaidRow {
  std::vector<SaidPart> parts = {};
  double deviation = 1;           // of the weights, times that of other projections
  double middle = 0, spread = 0;  // of the biases

  std::int64_t numbers() const;
  std::int64_t biased() const;
};

class Position {
 public:
  // `geometry.length` is the trained length: what a learned table has rows for, and CoPE positions.
  // Fields that say how long a model was trained keep their defaults unless the scheme's text sets
  // them.
  static Expected<Position> make(AnyScheme scheme, const Geometry& geometry,
                                 Parameters& parameters);

  // Another scheme that learns nothing in its place: a rotation scaled otherwise. Errors: one that
  // learns.
  Expected<void> replace(AnyScheme scheme);
  // To be called before a forward pass of texts of this length, with parameters as they are by now.
  Expected<void> prepare(std::int64_t length);

  Saying saying() const;
  SaidRow said_row() const;
  // The numbers of [text][token][said_row().numbers()] as the scheme takes them.
  Said views(float* numbers, std::int64_t texts, std::int64_t length) const;
  const Plan& plan() const { return plan_; }
  // The positions that `add` is given: a learned table's last row stands for all beyond.
  Expected<Positions> clamped(const Positions& positions) const;

  Expected<void> attend(const AttentionInputs& in, const Said& said, const Tensor& out);
  // Writes the gradients of q, k, v and of what was said, and adds to those of what the scheme
  // learns.
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
  Expected<void> content_backward(const AttentionInputs& in, const Said& said,
                                  const Tensor& out_gradient, const AttentionGradients& wanted,
                                  const Said& said_gradient);

  // Of a scheme that reads the content: what it learns, in the order of learned_, and what it is
  // told.
  struct Part {
    std::string_view name;
    Axes axes;
    bool table;
  };
  template <class Add>
  void learn_content(const ContentScheme& scheme, const Add& add);
  std::int64_t extent(Axis axis) const;
  Tensor view(const Part& part, std::vector<float>& numbers) const;
  std::vector<const TableInfo*> said_tables() const;

  AnyScheme scheme_;
  Geometry geometry_;
  Plan plan_;
  std::vector<float> rotated_;  // a table that another's projection is normalized and rotated to
  AngleForm form_;              // of rotations by content
  std::vector<Parameter*> learned_;  // in the order of learn()
  std::vector<Part> parts_;
};

}  // namespace posenc::lab
