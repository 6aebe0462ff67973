// Forgetting attention: Σ_{l=j+1..i} log f_l = c_i − c_j, c the running sum of log gates
// (log_gates.h), as biases of a row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "posenc/content.h"
#include "src/attention/backward.h"
#include "src/attention/fused.h"
#include "src/attention/reference.h"
#include "src/content/log_gates.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/gemm.h"

namespace posenc {
namespace {

// What both functions ask, once q, k and v are known to fit.
struct Gates {
  std::vector<double> constant;  // [head], where no token is read
  Tensor view;
  detail::GateSums sums;
  std::vector<std::int64_t> own;  // [batch][queries]
  std::int64_t queries = 0;
  double near = 0;  // what the sums of rows that share their biases may differ by

  static Expected<Gates> of(const Forgetting& forgetting, const detail::ContentCall& call) {
    const std::int64_t heads = call.heads();
    POSENC_CHECK(detail::check_counted(call));
    std::vector<double> constant;
    if (!forgetting.log_gates) {
      const auto given = static_cast<std::int64_t>(forgetting.gate_bias.size());
      if (given != 1 && given != heads) {
        return fail(call.where,
                    given == 0
                        ? std::string("forgetting.log_gates must be given")
                        : "forgetting.gate_bias must have one number, or " + std::to_string(heads),
                    given == 0 ? "none" : std::to_string(given),
                    "log σ(w·x + b) of each token; or gate_bias, of gates that read none");
      }
      for (const double b : forgetting.gate_bias)  // log σ(b)
        constant.push_back(std::min(b, 0.0) - std::log1p(std::exp(-std::abs(b))));
    }
    const Tensor everywhere{.data = constant.data(),
                            .dtype = DType::f64,
                            .rank = 3,
                            .shape = {call.batch(), heads, call.in.keys.size()},
                            .stride = {0, constant.size() > 1 ? 1 : 0, 0}};
    constexpr std::string_view name = "forgetting.log_gates";
    POSENC_TRY(gates,
               detail::gates_view(call, name,
                                  forgetting.log_gates ? forgetting.log_gates.values : everywhere));
    POSENC_TRY(sums, detail::GateSums::of(call, name, gates));
    return Gates{.constant = std::move(constant),
                 .view = gates,
                 .sums = std::move(sums),
                 .own = detail::own_keys(call),
                 .queries = call.in.queries.size(),
                 .near = call.in.sink_logits ? 0.0 : 4.0};
  }
};

// c_i − c_j as the provider of a row's biases. c_i shifts all logits of a row alike, which changes
// no weight but beside a sink's: rows near each other are given one row of biases, that of the
// first of them.
template <class T>
class ForgettingBias : public detail::RowBias<T> {
 public:
  ForgettingBias(const Gates& gates, std::int64_t group, std::int64_t most_keys)
      : gates_(gates), step_(detail::padded(most_keys) + detail::row_lanes) {
    rows_ = scratch_.template take_zeros<T>(group * rows_of_head * step_);
    shared_ = scratch_.template take<Shared>(group);
    group_ = group;
  }

  void begin(const detail::BiasBlock& block) override {
    block_ = &block;
    std::fill_n(shared_, group_, Shared{});
  }
  detail::RowBias<T>::Row row(std::int64_t g, std::int64_t query, T, detail::VisibleRange& seen,
                              T*) override {
    const std::int64_t own = own_key(query), first_key = block_->keys.first();
    if (own < 0) {
      seen = {};
      return {};
    }
    const detail::GateSums& sums = gates_.sums;
    const std::size_t at = sums.at(block_->sequence, block_->first_head + g, 0);
    const detail::GateSums::Run& run = sums.run_of(at + static_cast<std::size_t>(own));
    seen.begin = std::max(seen.begin, run.oldest - first_key);
    if (seen.empty()) return {};
    const double sum = sums.sum[at + static_cast<std::size_t>(own)];
    Shared& shared = shared_[g];
    // Far from the first row a float would lose what the difference needs.
    if (seen.begin < shared.begin || seen.end > shared.end || shared.run != &run ||
        std::abs(sum - shared.sum) > gates_.near) {
      shared = {.begin = std::max<std::int64_t>(seen.begin - most_shared, 0),
                .end = std::min(seen.end + most_shared, block_->key_count),
                .run = &run,
                .sum = sum,
                .index = (shared.index + 1) % rows_of_head};
      T* const to = row_of(g);
      detail::GateWalk(sums, block_->sequence, block_->first_head + g, own)
          .back_to(std::max(first_key + shared.begin, run.oldest), first_key + shared.end,
                   [&](std::int64_t first, std::int64_t count, const double* of, double offset) {
                     detail::line_of_doubles(of, -1, detail::gate_offset<T>(offset), count,
                                             to + (first - first_key));
                   });
    }
    return {row_of(g), 1};
  }

 protected:
  std::int64_t own_key(std::int64_t query) const {
    return gates_.own[static_cast<std::size_t>(block_->sequence * gates_.queries +
                                               block_->queries.first() + query)];
  }

  T* row_of(std::int64_t g) const { return rows_ + (g * rows_of_head + shared_[g].index) * step_; }

  // What the row of biases that rows of a head share now holds: keys [begin, end), from the sum
  // that is c_i.
  struct Shared {
    std::int64_t begin = 0, end = 0;
    const detail::GateSums::Run* run = nullptr;
    double sum = 0;
    std::int64_t index = 0;  // of rows_of_head
  };
  // The rows of a tile keep what they were given while the next of them is asked for.
  static constexpr std::int64_t rows_of_head = detail::tile_rows;
  static constexpr std::int64_t most_shared = 16;  // keys more than the first row sees

  detail::Scratch scratch_;
  const Gates& gates_;
  const std::int64_t step_;
  std::int64_t group_ = 0;
  T* rows_ = nullptr;  // [head of the group][rows_of_head][step_]
  Shared* shared_ = nullptr;
  const detail::BiasBlock* block_ = nullptr;
};

template <class T>
class ForgettingBiasGradient final : public ForgettingBias<T> {
 public:
  // by_gates [head of the group][GateGradients::size]
  ForgettingBiasGradient(const Gates& gates, std::int64_t group, std::int64_t keys,
                         double* by_gates)
      : ForgettingBias<T>(gates, group, keys), by_gates_(by_gates) {}

  void take_gradient(std::int64_t g, std::int64_t query, T, const detail::VisibleRange& seen,
                     const T* by_logit) override {
    const std::int64_t row = this->gates_.sums.row, own = this->own_key(query);
    const detail::GateGradients gates(by_gates_ + g * detail::GateGradients::size(row), row);
    double before = 0;
    for (std::int64_t first = seen.begin; first < seen.end;) {
      const std::int64_t block = first / detail::block_keys,
                         end = std::min((block + 1) * detail::block_keys, seen.end);
      before = gates.take(first, end - first, by_logit + first, T{1}, own, before);
      first = end;
    }
  }

 private:
  double* by_gates_;
};

}  // namespace

Expected<void> detail::attend_with(const Forgetting& forgetting, const ContentCall& call) {
  POSENC_TRY(gates, Gates::of(forgetting, call));
  with_compute_type(call.in.q.dtype, [&]<class T>(T*) {
    attend_all<T>(call.checked, call.plan, [&](const AttendJob&) {
      return ForgettingBias<T>(gates, call.checked.group(), key_block);
    });
  });
  return {};
}

Expected<void> detail::reference_with(const Forgetting& forgetting, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_TRY(gates, Gates::of(forgetting, call));
  const auto add = [&](const ReferenceRow& row) {
    const std::int64_t own =
        gates.own[static_cast<std::size_t>(row.sequence * gates.queries + row.query)];
    double forgotten = 0;
    for (std::int64_t j = own; j >= 0; --j) {
      double& logit = row.logits[static_cast<std::size_t>(j)];
      if (logit != -std::numeric_limits<double>::infinity()) logit += forgotten;
      if (call.keeps(row.sequence, j))
        forgotten += gates.view.get(gates.view.offset(row.sequence, row.head, j));
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = add, .weights = weights});
}

Expected<void> detail::backward_with(const Forgetting& forgetting, const BackwardCall& call) {
  POSENC_TRY(gates, Gates::of(forgetting, call));
  POSENC_TRY(wanted, gradient_like(call.where, "the gradient of the log gates",
                                   call.gradients.log_gates, gates.view));
  const BackwardArguments& backward = call.backward;
  const std::int64_t size = GateGradients::size(gates.sums.row);
  std::vector<double> by_gates(static_cast<std::size_t>(backward.shares() * size));
  with_compute_type(call.in.q.dtype, [&]<class T>(T*) {
    biased_backward<T>(backward, call.plan, [&](std::int64_t first_share) {
      return ForgettingBiasGradient<T>(gates, call.checked.group(), call.in.keys.size(),
                                       by_gates.data() + first_share * size);
    });
  });
  if (!wanted) return {};
  write_gate_gradients(call, wanted, gates.view, by_gates,
                       [&](std::int64_t part, std::int64_t b, std::int64_t h) {
                         return (b * backward.parts + part) * call.heads() + h;
                       });
  return {};
}

}  // namespace posenc
