// Projected sinusoids of the distance (Transformer-XL). The mathematics is in
// src/schemes/transformer_xl.cc.
#pragma once

#include "posenc/schemes/sinusoidal.h"

namespace [[gnu::visibility("default")]] posenc {

struct TransformerXl {
  WaveLayout layout = WaveLayout::concatenated;
  double base = 10000;
  bool bidirectional = true;
  bool biases = true;
  WaveSpacing spacing = WaveSpacing::width;
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
        Field{"biases", &TransformerXl::biases, "learned u and v of each head beside the query"},
        Field{"spacing", &TransformerXl::spacing,
              "frequencies base^(−2r/d) or, to both ends, base^(−r/(d/2−1)) (Gemma's sound)"}};
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

// The gradients by Transformer-XL's learned tensors, in their shapes row by row, given what
// attend_backward gives for its plan: by relative.key [heads][row][head_dim], by the bias table
// [heads][row] and by relative.query, the latter two absent without biases. Errors: tables not
// given, other shapes.
struct TransformerXlGradients {
  std::vector<double> projection = {}, content_bias = {}, position_bias = {};
};
Expected<TransformerXlGradients> transformer_xl_gradients(const TransformerXl& scheme,
                                                          const Geometry& geometry,
                                                          const Tensor& key_gradient,
                                                          const Tensor& bias_gradient = {},
                                                          const Tensor& query_gradient = {});

}  // namespace posenc
