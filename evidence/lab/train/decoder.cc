#include "evidence/lab/train/decoder.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "evidence/bench/harness/blas.h"
#include "posenc/bench.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

using detail::Blas;
using Numbers = std::vector<float>;

const Blas* products() {
  static const Blas* const found = Blas::found(bench_machine().instruction_set);
  return found;
}

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

// y [rows][out] = x [rows][in] · Wᵀ + keep · y, W [out][in].
void linear(const Numbers& x, const Parameter& w, Numbers& y, std::int64_t in, float keep = 0) {
  const std::int64_t rows = std::ssize(x) / in, out = std::ssize(w.value) / in;
  products()->multiply({x.data()}, {w.value.data(), true}, y.data(), rows, out, in, 1, keep);
}

// Given the gradient by y: dx = dy · W + keep · dx, and dW += dyᵀ · x.
void linear_backward(const Numbers& x, Parameter& w, const Numbers& dy, Numbers& dx,
                     std::int64_t in, float keep = 0) {
  const std::int64_t rows = std::ssize(x) / in, out = std::ssize(w.value) / in;
  products()->multiply({dy.data()}, {w.value.data()}, dx.data(), rows, in, out, 1, keep);
  products()->multiply({dy.data(), true}, {x.data()}, w.gradient.data(), out, in, rows, 1, 1);
}

float inverse_rms(const float* row, std::size_t width) {
  float squares = 0;
  for (std::size_t i = 0; i < width; ++i) squares += row[i] * row[i];
  return 1 / std::sqrt(squares / static_cast<float>(width) + static_cast<float>(norm_epsilon));
}

void normalize_rows(const Numbers& x, const Parameter& gain, Numbers& y) {
  const std::size_t width = gain.value.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    const float scale = inverse_rms(&x[row], width);
    for (std::size_t i = 0; i < width; ++i) y[row + i] = x[row + i] * scale * gain.value[i];
  }
}

// dx += the gradient by x of the normalized rows, whose gradient is dy.
void normalize_backward(const Numbers& x, Parameter& gain, const Numbers& dy, Numbers& dx) {
  const std::size_t width = gain.value.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    const float scale = inverse_rms(&x[row], width);
    float along = 0;
    for (std::size_t i = 0; i < width; ++i) {
      gain.gradient[i] += dy[row + i] * x[row + i] * scale;
      along += dy[row + i] * gain.value[i] * x[row + i];
    }
    along *= scale * scale / static_cast<float>(width);
    for (std::size_t i = 0; i < width; ++i)
      dx[row + i] += scale * (dy[row + i] * gain.value[i] - x[row + i] * along);
  }
}

// What is made of a row of a projection; `lengths` takes what a row of length 1 was divided by.
void activate(std::span<float> row, Activation activation, Numbers& lengths) {
  switch (activation) {
    case Activation::none:
    case Activation::rms_rotated: return;
    case Activation::log_sigmoid:
      for (float& z : row) z = std::min(z, 0.0F) - std::log1p(std::exp(-std::abs(z)));
      return;
    case Activation::twice_sigmoid:
      for (float& z : row) z = 2 / (1 + std::exp(-z));
      return;
    case Activation::unit_length: break;
  }
  float squares = 1e-12F;
  for (const float z : row) squares += z * z;
  lengths.push_back(std::sqrt(squares));
  for (float& z : row) z /= lengths.back();
}

// From the gradient by ln σ(z), which is 1 − σ(z) times as much by z; by 2σ(z) it is β(1 − β/2);
// and through w = z/|z|.
void activate_backward(std::span<const float> row, Activation activation, const float*& length,
                       float* by) {
  float along = 0;
  switch (activation) {
    case Activation::none:
    case Activation::rms_rotated: return;
    case Activation::log_sigmoid:
      for (const float gate : row) *by++ *= -std::expm1(gate);
      return;
    case Activation::twice_sigmoid:
      for (const float beta : row) *by++ *= beta * (1 - beta / 2);
      return;
    case Activation::unit_length: break;
  }
  for (std::size_t c = 0; c < row.size(); ++c) along += by[c] * row[c];
  for (std::size_t c = 0; c < row.size(); ++c) by[c] = (by[c] - row[c] * along) / *length;
  ++length;
}

}  // namespace

struct Decoder::State {
  struct Layer {
    bool positioned = true;
    Parameter *norm1, *qkv, *out, *norm2, *up, *down;
    Parameter *says = nullptr, *says_bias = nullptr;  // what its tokens say to the scheme
    // What the backward pass reads again.
    Numbers before, normed1, projected, said, lengths, attended, between, normed2, raised, squared;
  };

  DecoderShape shape;
  Parameters parameters;
  Position position, bare;  // of layers with the scheme, and of the others: none, or RoPE
  Parameter *embedding, *head, *last_norm;
  std::deque<Layer> layers;
  // Of the batch in hand:
  std::int64_t texts = 0, length = 0;
  Positions positions;
  Numbers x, normed, logits, losses;
  std::vector<std::uint8_t> hits;
  Numbers dx, dnormed, dprojected, dattended, draised, dsaid;

  std::int64_t rows() const { return texts * length; }
  std::int64_t head_dim() const { return shape.width / shape.heads; }
  Position& position_of(const Layer& layer) { return layer.positioned ? position : bare; }

  Tensor stream(Numbers& numbers) const {
    return Tensor::dense(numbers.data(), {texts, length, shape.width});
  }
  // Part `which` of q, k, v out of rows of `parts` such parts, as [text][head][position][channel].
  Tensor heads(Numbers& numbers, std::int64_t which, std::int64_t parts) const {
    const std::int64_t row = parts * shape.width;
    Tensor made = Tensor::dense(numbers.data() + which * shape.width,
                                {texts, shape.heads, length, head_dim()});
    made.stride = {length * row, head_dim(), row, 1};
    return made;
  }
  // Numbers [text][position][said] as the scheme takes them.
  Said said(Numbers& numbers) const { return position.views(numbers.data(), texts, length); }
  AttentionInputs inputs(Layer& layer) {
    return {.q = heads(layer.projected, 0, 3),
            .k = heads(layer.projected, 1, 3),
            .v = heads(layer.projected, 2, 3),
            .queries = positions,
            .keys = positions,
            .mask = {.causal = shape.causal, .window = layer.positioned ? shape.window : 0},
            .threads = {1}};
  }

  Expected<void> build(AnyScheme scheme);
  Expected<void> begin(const Batch& batch);
  Expected<void> forward(Layer& layer);
  Expected<void> backward(Layer& layer);
  void forward_said(Layer& layer);
  void backward_said(Layer& layer);
  Expected<void> run(const Batch& batch);  // up to the logits
  double score(const Batch& batch);
  Expected<double> forward(const Batch& batch);
  Expected<void> backward(const Batch& batch);
};

Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

Expected<Decoder> Decoder::make(const DecoderShape& shape, AnyScheme scheme, std::uint64_t seed) {
  if (products() == nullptr)
    return fail("lab", "needs OpenBLAS for its matrix products", "none on this machine",
                "apt-get install libopenblas0-pthread");
  auto state = std::make_unique<State>(State{.shape = shape, .parameters = Parameters(seed)});
  POSENC_CHECK(state->build(std::move(scheme)));
  return Decoder(std::move(state));
}

Expected<void> Decoder::State::build(AnyScheme scheme) {
  const std::int64_t width = shape.width;
  const double fan = 1 / std::sqrt(static_cast<double>(width));
  // What writes to the residual stream starts smaller the more layers write to it, as GPT-2's does.
  const double depth = 1 / std::sqrt(2.0 * static_cast<double>(shape.layers));
  embedding = &parameters.add("embedding", shape.vocabulary * width, fan);
  head = shape.tied ? embedding : &parameters.add("head", shape.vocabulary * width, fan);
  last_norm = &parameters.add("last_norm", width, 0, 1);
  const Geometry geometry{.width = width,
                          .heads = shape.heads,
                          .kv_heads = shape.heads,
                          .head_dim = head_dim(),
                          .length = shape.trained_length};
  const auto* by_content = std::get_if<ContentRope>(&scheme);
  const std::int64_t first = by_content ? by_content->first : 0;
  if (first > 0) {
    POSENC_TRY(below, Position::make(Scheme(Rope{}), geometry, parameters));
    bare = std::move(below);
  }
  POSENC_TRY(made, Position::make(std::move(scheme), geometry, parameters));
  position = std::move(made);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto add = [&, name = "layer" + std::to_string(i) + "."](
                         const char* what, std::int64_t size, double deviation, double middle = 0) {
      return &parameters.add(name + what, size, deviation, middle);
    };
    Layer& layer = layers.emplace_back();
    layer.positioned =
        i >= first && (shape.without_every == 0 || (i + 1) % shape.without_every != 0);
    layer.norm1 = add("norm1", width, 0, 1);
    layer.qkv = add("qkv", 3 * width * width, fan);
    layer.out = add("out", width * width, fan * depth);
    layer.norm2 = add("norm2", width, 0, 1);
    layer.up = add("up", shape.hidden * width, fan);
    layer.down =
        add("down", width * shape.hidden, depth / std::sqrt(static_cast<double>(shape.hidden)));
    if (!layer.positioned || position.saying() == Saying::nothing) continue;
    const SaidRow said = position.said_row();
    layer.says = add("gates", said.numbers() * width, said.deviation * fan);
    layer.says_bias = add("gate_bias", said.biased(), said.spread, said.middle);
    layer.says_bias->decays = false;
  }
  return {};
}

// --- forward -----------------------------------------------------------------------------------

Expected<void> Decoder::State::begin(const Batch& batch) {
  texts = batch.texts;
  length = batch.length;
  positions = batch.positions.size() > 0 ? batch.positions : Positions::range(0, length);
  const std::size_t row = count(shape.width);
  x.resize(count(rows()) * row);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    std::copy_n(&embedding->value[count(batch.tokens[i]) * row], row, &x[i * row]);
  POSENC_CHECK(position.prepare(positions.length()));
  if (!position.plan().add) return {};
  POSENC_TRY(at, position.clamped(positions));
  return add(position.plan(), stream(x), at, stream(x), {1});
}

void Decoder::State::forward_said(Layer& layer) {
  if (layer.says == nullptr) return;
  const SaidRow row = position.said_row();
  layer.said.resize(count(rows() * row.numbers()));
  linear(layer.normed1, *layer.says, layer.said, shape.width);
  layer.lengths.clear();
  float* said = layer.said.data();
  for (std::int64_t token = 0; token < rows(); ++token) {
    const float* bias = layer.says_bias->value.data();
    for (const SaidPart& part : row.parts) {
      if (part.biased)
        for (std::int64_t i = 0; i < part.numbers; ++i) said[i] += *bias++;
      for (float* of = said; of != said + part.numbers; of += part.columns)
        activate({of, count(part.columns)}, part.activation, layer.lengths);
      said += part.numbers;
    }
  }
}

Expected<void> Decoder::State::forward(Layer& layer) {
  const std::size_t size = x.size();
  layer.before = x;
  for (Numbers* each : {&layer.normed1, &layer.attended, &layer.normed2}) each->resize(size);
  layer.projected.resize(3 * size);
  layer.raised.resize(count(rows() * shape.hidden));
  normalize_rows(x, *layer.norm1, layer.normed1);
  linear(layer.normed1, *layer.qkv, layer.projected, shape.width);
  forward_said(layer);
  POSENC_CHECK(
      position_of(layer).attend(inputs(layer), said(layer.said), heads(layer.attended, 0, 1)));
  linear(layer.attended, *layer.out, x, shape.width, 1);
  layer.between = x;
  normalize_rows(x, *layer.norm2, layer.normed2);
  linear(layer.normed2, *layer.up, layer.raised, shape.width);
  layer.squared = layer.raised;
  for (float& number : layer.squared) number = number > 0 ? number * number : 0;
  linear(layer.squared, *layer.down, x, shape.hidden, 1);
  return {};
}

// The mean loss; `logits` become its gradient by them.
double Decoder::State::score(const Batch& batch) {
  const std::size_t size = count(shape.vocabulary);
  losses.assign(batch.targets.size(), 0);
  hits.assign(batch.targets.size(), 0);
  const auto scored = static_cast<float>(
      std::ranges::count_if(batch.targets, [](std::int32_t target) { return target >= 0; }));
  double sum = 0;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const std::span<float> row = std::span(logits).subspan(i * size, size);
    if (batch.targets[i] < 0) {
      std::ranges::fill(row, 0.0F);
      continue;
    }
    const auto target = count(batch.targets[i]);
    const auto likeliest = std::ranges::max_element(row);
    const float most = *likeliest, said = row[target] - most;
    hits[i] = likeliest == row.begin() + batch.targets[i];
    double total = 0;
    for (float& logit : row) total += logit = std::exp(logit - most);
    const double loss = std::log(total) - static_cast<double>(said);
    losses[i] = static_cast<float>(loss);
    sum += loss;
    const float share = 1 / (static_cast<float>(total) * scored);
    for (float& weight : row) weight *= share;
    row[target] -= 1 / scored;
  }
  return sum / std::max(1.0, static_cast<double>(scored));
}

Expected<void> Decoder::State::run(const Batch& batch) {
  POSENC_CHECK(begin(batch));
  for (Layer& layer : layers) POSENC_CHECK(forward(layer));
  normed.resize(x.size());
  normalize_rows(x, *last_norm, normed);
  logits.resize(count(rows() * shape.vocabulary));
  linear(normed, *head, logits, shape.width);
  return {};
}

Expected<double> Decoder::State::forward(const Batch& batch) {
  POSENC_CHECK(run(batch));
  return score(batch);
}

// --- backward ------------------------------------------------------------------------------------

void Decoder::State::backward_said(Layer& layer) {
  if (layer.says == nullptr) return;
  const SaidRow row = position.said_row();
  const float *said = layer.said.data(), *length_of_z = layer.lengths.data();
  float* by = dsaid.data();
  for (std::int64_t token = 0; token < rows(); ++token) {
    float* by_bias = layer.says_bias->gradient.data();
    for (const SaidPart& part : row.parts) {
      for (std::int64_t i = 0; i < part.numbers; i += part.columns)
        activate_backward({said + i, count(part.columns)}, part.activation, length_of_z, by + i);
      if (part.biased)
        for (std::int64_t i = 0; i < part.numbers; ++i) *by_bias++ += by[i];
      said += part.numbers, by += part.numbers;
    }
  }
  linear_backward(layer.normed1, *layer.says, dsaid, dnormed, shape.width, 1);
}

Expected<void> Decoder::State::backward(Layer& layer) {
  for (Numbers* each : {&dnormed, &dattended}) each->resize(x.size());
  draised.resize(layer.raised.size());
  linear_backward(layer.squared, *layer.down, dx, draised, shape.hidden);
  for (std::size_t i = 0; i < draised.size(); ++i)
    draised[i] *= 2 * std::max(layer.raised[i], 0.0F);
  linear_backward(layer.normed2, *layer.up, draised, dnormed, shape.width);
  normalize_backward(layer.between, *layer.norm2, dnormed, dx);

  linear_backward(layer.attended, *layer.out, dx, dattended, shape.width);
  dprojected.resize(3 * x.size());
  dsaid.resize(layer.said.size());
  POSENC_CHECK(position_of(layer).attend_backward(
      inputs(layer), said(layer.said), heads(dattended, 0, 1),
      {.q = heads(dprojected, 0, 3), .k = heads(dprojected, 1, 3), .v = heads(dprojected, 2, 3)},
      layer.says != nullptr ? said(dsaid) : Said{}));
  linear_backward(layer.normed1, *layer.qkv, dprojected, dnormed, shape.width);
  backward_said(layer);
  normalize_backward(layer.before, *layer.norm1, dnormed, dx);
  return {};
}

Expected<void> Decoder::State::backward(const Batch& batch) {
  parameters.clear_gradients();
  dx.assign(x.size(), 0);
  dnormed.resize(x.size());
  linear_backward(normed, *head, logits, dnormed, shape.width);
  normalize_backward(x, *last_norm, dnormed, dx);
  for (std::int64_t i = shape.layers; i-- > 0;) POSENC_CHECK(backward(layers[count(i)]));
  POSENC_TRY(at, position.clamped(positions));
  POSENC_CHECK(position.add_backward(at, stream(dx)));
  const std::size_t row = count(shape.width);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    for (std::size_t c = 0; c < row; ++c)
      embedding->gradient[count(batch.tokens[i]) * row + c] += dx[i * row + c];
  return {};
}

Expected<double> Decoder::loss(const Batch& batch) { return state_->forward(batch); }

Expected<double> Decoder::learn(const Batch& batch) {
  POSENC_TRY(loss, state_->forward(batch));
  POSENC_CHECK(state_->backward(batch));
  return std::move(loss);
}

Expected<std::span<const float>> Decoder::logits(const Batch& batch) {
  POSENC_CHECK(state_->run(batch));
  return state_->logits;
}

std::span<const float> Decoder::losses() const { return state_->losses; }
std::span<const std::uint8_t> Decoder::hits() const { return state_->hits; }
std::span<const float> Decoder::residual(std::int64_t at) const {
  return at < state_->shape.layers ? state_->layers[count(at)].before : state_->x;
}
Parameters& Decoder::parameters() { return state_->parameters; }
Position& Decoder::position() { return state_->position; }

}  // namespace posenc::lab
