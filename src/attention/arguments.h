// What every attention asks of its arguments, the same before each of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/attention.h"

namespace posenc::detail {

// The plan's vectors by distance, each [head or 1][row][head_dim]; those it does not use are absent.
struct RelativeTables {
  const DistanceRows* rows = nullptr;
  Tensor query, key, value;
};

struct AttendArguments {
  Tensor q, k, v, out, logits;  // of four axes; logits absent where nobody wants them
  RelativeTables relative;
};

Expected<AttendArguments> attend_arguments(std::string_view where, const Tensor& q, const Tensor& k,
                                           const Tensor& v, const Plan& plan,
                                           const Positions& queries, const Positions& keys,
                                           const Tensor& out, const Tensor& logits = {});

}  // namespace posenc::detail
