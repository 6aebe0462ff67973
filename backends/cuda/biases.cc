// Biases by distance: brought to a device as slopes or as a value for each distance, and written
// out there.
#include <cstdint>
#include <variant>
#include <vector>

#include "backends/cuda/calls.h"
#include "posenc/features.h"

namespace posenc::cuda {
namespace {

// [head or 1][distance], in double.
Expected<std::vector<double>> values_of(const BiasTable& table) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const Tensor values = table.values.values.with_rank(2);
  const auto distances = static_cast<std::int64_t>(table.rows.row.size());
  if (!table.values || values.shape[1] != table.row_count)
    return fail(where, "the learned bias table must be given", shape_text(table.values.values),
                "set bias.values in the plan");
  if (distances == 0 || distances > most / std::max<std::int64_t>(values.shape[0], 1))
    return fail(where, "a bias may have 2^24 distances times heads", std::to_string(distances));
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(distances * values.shape[0]));
  for (std::int64_t head = 0; head < values.shape[0]; ++head)
    for (const std::int32_t row : table.rows.row)
      all.push_back(values.get(values.offset(head, row)));
  return all;
}

}  // namespace

Expected<Biases> Biases::make(const Plan& plan, const Backend& backend) {
  if (!plan.bias)
    return fail(where, "a plan must have a bias", "none", "posenc explain shows what it does");
  POSENC_CHECK(check_takes(rooms::bias, plan, where));
  POSENC_CHECK(check_device(backend));
  Biases made;
  made.backend_ = &backend;
  std::vector<double> numbers;
  if (const auto* slopes = std::get_if<Slopes>(&*plan.bias)) {
    numbers = slopes->slope;
    made.heads_ = static_cast<std::int64_t>(numbers.size());
    made.by_slopes_ = true;
    made.absolute_ = slopes->bidirectional;
  } else {
    const auto& table = std::get<BiasTable>(*plan.bias);
    if (table.axes() > 1)
      return fail(where, "a bias must be of one axis", std::to_string(table.axes()),
                  "attend() on the processor has those of several");
    POSENC_TRY(values, values_of(table));
    numbers = std::move(values);
    made.first_ = table.rows.first;
    made.last_ = table.rows.last();
    made.saturates_ = table.rows.saturates;
    made.heads_ = static_cast<std::int64_t>(numbers.size()) / (made.last_ - made.first_ + 1);
  }
  POSENC_CHECK(bring(made.doubles_, backend, numbers));
  POSENC_CHECK(bring(made.floats_, backend, std::vector<float>(numbers.begin(), numbers.end())));
  return made;
}

namespace {

template <class Real>
DeviceBias<Real> bias_of(const void* numbers, bool by_slopes, std::int64_t heads,
                         std::int64_t first, std::int64_t last, bool absolute, bool saturates) {
  const auto* there = static_cast<const Real*>(numbers);
  return {.slope = by_slopes ? there : nullptr,
          .values = by_slopes ? nullptr : there,
          .first = first,
          .last = last,
          .head_stride = heads == 1 ? 0 : last - first + 1,
          .absolute = absolute,
          .saturates = saturates};
}

}  // namespace

DeviceBias<float> Biases::in_float() const {
  return bias_of<float>(floats_.get(), by_slopes_, heads_, first_, last_, absolute_, saturates_);
}
DeviceBias<double> Biases::in_double() const {
  return bias_of<double>(doubles_.get(), by_slopes_, heads_, first_, last_, absolute_, saturates_);
}

Expected<void> bias(const Biases& biases, const DevicePositions& queries,
                    const DevicePositions& keys, const Tensor& out_view, void* stream) {
  if (biases.backend_ == nullptr) return fail(where, "biases must have been made", "none");
  const Tensor out = out_view.with_rank(3);
  if (!out_view || out_view.rank > 3 || out.shape[0] > INT32_MAX)
    return fail(where, "out must be [head, query, key]", shape_text(out_view));
  const bool any_head = biases.heads_ == 1 && !biases.by_slopes_;
  if (!any_head && out.shape[0] != biases.heads_)
    return fail(where, "heads must be those of the bias, " + std::to_string(biases.heads_),
                std::to_string(out.shape[0]));
  if (queries.real_ids != nullptr || keys.real_ids != nullptr)
    return fail(where, "positions of a bias by distance must be whole", "real ids");
  POSENC_TRY(query_tokens, tokens_of(queries, 1, out.shape[1]));
  POSENC_TRY(key_tokens, tokens_of(keys, 1, out.shape[2]));
  if (out.size() == 0) return {};
  const auto n = 16 / static_cast<std::int64_t>(size_of(out.dtype));
  return done(biases.backend_->bias(
      {.bias = biases.in_double(),
       .out = out.data,
       .out_head = out.stride[0],
       .out_query = out.stride[1],
       .out_key = out.stride[2],
       .number = static_cast<Number>(out.dtype),
       .wide = in_words(out) && out.shape[2] % n == 0 && keys.cu_seqlens == nullptr,
       .heads = static_cast<std::int32_t>(out.shape[0]),
       .queries = query_tokens,
       .keys = key_tokens},
      stream));
}

}  // namespace posenc::cuda
