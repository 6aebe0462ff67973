// The reference of attention, open to schemes that read the content: what each makes of a query's
// logits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "posenc/plan.h"
#include "src/attention/arguments.h"

namespace posenc::detail {

struct ReferenceRow {
  std::int64_t sequence, head, query;
  std::span<const double> q;  // the query as it came
  const double* rotated_q;
  const double* rotated_keys;  // [key][head_dim], of the query's key head
  double scale;                // of its logits
  std::span<double> logits;    // [key], −∞ where hidden; to be changed
};

struct ReferenceRule {
  std::function<void(const ReferenceRow&)> change = {};
  bool leaves_log_weights = false;  // in logits, so that no softmax follows
  Tensor weights = {};              // if given, receives what the values are multiplied by
};

// Attention in plain double loops on one thread; in.logits, where given, receives the rows as the
// rule leaves them.
Expected<void> attend_by_rows(const AttendArguments& in, const Plan& plan,
                              const ReferenceRule& rule);

}  // namespace posenc::detail
