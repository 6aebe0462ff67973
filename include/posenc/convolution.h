// Positions by convolution: a token learns where it stands from what stands beside it, before
// attention that knows no order. wav2vec 2.0 (2006.11477) and its kin add a convolution over 128
// frames of sound, CPVT (2102.10882) one over 3 × 3 patches of a picture. Such vectors read the
// content, so that no plan says them (plan.h): this is a step of its own, on the embedding.
//
//   y_t = x_t + f(b + Σ_k W_k x_{t + k − ⌊taps/2⌋})
//
// Beyond the ends of a text or a picture stand zeros.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/resample.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

// f, which each channel's sum goes through.
enum class AfterConvolution : std::uint8_t {
  none,             // CPVT's position encoding generator, Twins, Florence-2
  gelu,             // x/2·(1 + erf(x/√2)): wav2vec 2.0, HuBERT, WavLM
  normalised_gelu,  // of (x − mean)/√(variance + 10⁻⁵) over the channels of a token: data2vec
};
constexpr auto words_of(AfterConvolution) {
  return std::array<std::string_view, 3>{"none", "gelu", "normalised_gelu"};
}

// The convolution of a layer: its weights, and what becomes of its sums.
struct PositionConvolution {
  // W as PyTorch stores it: [width][width/groups][taps] of a line (Conv1d),
  // [width][width/groups][rows][columns] of a picture (Conv2d). With one channel in a group, all
  // are by themselves. An even number of taps has one more in front of the token than behind it,
  // as wav2vec 2.0 cuts its last frame off.
  Table weight = {};
  Table bias = {};  // b [width]; absent: none
  AfterConvolution after = AfterConvolution::none;
  // x_t. false: f alone, as data2vec's five in a row want it, behind which their caller adds the
  // first one's x; and SEW's, of which every squeeze_factor-th token counts.
  bool adds = true;
};

// What a convolution reads.
struct ConvolvedTokens {
  Tensor x = {};          // [batch, tokens, width], of any of the four dtypes and any strides
  GridSize grid = {};     // of a picture, whose patches are the tokens row by row; 0 x 0: a line
  std::int64_t kept = 0;  // class tokens in front of them, copied as they are
  // [batch][token], zero for padding, which counts as zeros; null: none. transformers does so once,
  // before the first of several convolutions.
  const std::uint8_t* keep = nullptr;
  Threads threads = {};
};

// y, out [batch, tokens, width] of x's dtype, x's own memory or other. Float, bfloat16 and half are
// computed in float, double in double, rounded once; the same bits for any number of threads.
// Errors: shapes, no channels, groups that do not divide them, more than 2^20 taps, a picture's
// weight without a grid or a line's with one, a grid and kept tokens that are not all tokens.
Expected<void> convolve_positions(const PositionConvolution& convolution,
                                  const ConvolvedTokens& tokens, const Tensor& out);

// The same in plain double loops, the truth for it.
Expected<void> convolve_positions_reference(const PositionConvolution& convolution,
                                            const ConvolvedTokens& tokens, const Tensor& out);

// Where gradients go, shaped as what they are by; those that are absent are not wanted.
struct ConvolutionGradients {
  Tensor x = {}, weight = {}, bias = {};
};
// Of a loss whose gradient by y is `out_gradient`. Sums are computed as y is. Errors: those of
// convolve_positions.
Expected<void> convolve_positions_backward(const PositionConvolution& convolution,
                                           const ConvolvedTokens& tokens,
                                           const Tensor& out_gradient,
                                           const ConvolutionGradients& gradients);

// W of a convolution that is stored as lengths and directions (torch.nn.utils.weight_norm):
// lengths · directions / ‖directions‖. `lengths` has the axes of `directions`, of extent 1 where
// the norm is taken over: [1][1][taps] in wav2vec 2.0. Three axes, any dtypes; `weight` has the
// shape of directions. Errors: shapes.
Expected<void> merge_weight_norm(const Tensor& lengths, const Tensor& directions,
                                 const Tensor& weight);

}  // namespace posenc
