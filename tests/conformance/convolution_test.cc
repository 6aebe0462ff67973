// Positions by convolution as families' own modules compute them (tests/peers/convolutions.py).
#include "posenc/convolution.h"
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {
namespace of_convolutions {

struct Numbers {
  std::vector<double> values;
  std::vector<std::int64_t> shape;
  explicit Numbers(const Json& tensor)
      : values(numbers<double>(tensor.at("values"))),
        shape(numbers<std::int64_t>(tensor.at("shape"))) {}
  Tensor view() {
    if (shape.size() == 1) return Tensor::dense(values.data(), {shape[0]});
    if (shape.size() == 3) return Tensor::dense(values.data(), {shape[0], shape[1], shape[2]});
    return Tensor::dense(values.data(), {shape[0], shape[1], shape[2], shape[3]});
  }
};

// As a model stores it: whole, or as lengths and directions.
Numbers weight_of(const Json& layer) {
  if (layer.contains("weight")) return Numbers(layer.at("weight"));
  Numbers lengths(layer.at("lengths")), weight(layer.at("directions"));
  const auto merged = merge_weight_norm(lengths.view(), weight.view(), weight.view());
  EXPECT_TRUE(merged) << merged.error().message();
  return weight;
}

AfterConvolution after_of(const std::string& word) {
  return word == "gelu"   ? AfterConvolution::gelu
         : word == "none" ? AfterConvolution::none
                          : AfterConvolution::normalised_gelu;
}

TEST(Convolutions, AreThoseOfTheirFamilies) {
  for (const Json& record : records("convolutions")) {
    SCOPED_TRACE(record.at("model").get<std::string>());
    const Numbers x(record.at("x")), wanted(record.at("y"));
    Numbers y = x;
    const Json& layers = record.at("layers");
    const bool one = layers.size() == 1, adds = record.value("adds", true);
    GridSize grid;
    if (record.contains("grid")) {
      const auto sides = numbers<std::int64_t>(record.at("grid"));
      grid = {sides[0], sides[1]};
    }
    for (const Json& layer : layers) {
      Numbers weight = weight_of(layer), bias(layer.at("bias"));
      const PositionConvolution convolution{.weight = Table::borrow(weight.view()),
                                            .bias = Table::borrow(bias.view()),
                                            .after = after_of(layer.at("after").get<std::string>()),
                                            .adds = one && adds};
      const auto done = convolve_positions(convolution, {.x = y.view(), .grid = grid}, y.view());
      ASSERT_TRUE(done) << done.error().message();
    }
    if (!one && adds)
      for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += x.values[i];
    expect_close(y.values, wanted.values, 1e-8);
  }
}

}  // namespace of_convolutions
}  // namespace
}  // namespace posenc::golden
