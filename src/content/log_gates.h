// Forget gates of heads, log σ of each token, as running sums: Σ_{l=j+1..i} log f_l = c_i − c_j. A
// difference of two sums is as good as the larger of them, so the sums start anew before they grow
// large: a gate of −1e38 spoils nothing behind it. A gate of 0 (−∞) hides every key before it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "src/content/stream.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc::detail {

// A gate as it is summed up. Errors: one above 0, or NaN.
inline Expected<double> checked_gate(std::string_view where, std::string_view name, double gate,
                                     std::int64_t key) {
  if (gate <= 0) return gate;
  return fail(where, std::string(name) + " must be at most 0",
              number_text(gate) + " at key " + std::to_string(key),
              "pass the logarithm of the gate, log σ(w·x + b)");
}

// Of every head and key the sum of the gates of its run, which is a stretch of keys.
struct GateSums {
  struct Run {
    std::int64_t first = 0;   // its first key, whose own gate is in no sum
    double gap = 0;           // Σ of the gates behind the first key of the run before up to `first`
    std::int64_t oldest = 0;  // no key before this one counts
  };
  static constexpr double most = 1 << 20;  // of a sum: differences are good to 1e-10

  std::int64_t heads = 0, row = 0;
  std::vector<double> sum;        // [batch][head][row], keys rounded up
  std::vector<std::int64_t> run;  // the same: of runs
  std::vector<Run> runs;          // of a head one after the other

  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return static_cast<std::size_t>((b * heads + h) * row + j);
  }
  const Run& run_of(std::size_t key) const { return runs[static_cast<std::size_t>(run[key])]; }

  static Expected<GateSums> of(const ContentCall& call, std::string_view name,
                               const Tensor& gates) {
    GateSums sums;
    sums.heads = gates.shape[1];
    sums.row = padded(gates.shape[2]);
    sums.sum.resize(sums.at(gates.shape[0], 0, 0));
    sums.run.resize(sums.sum.size());
    TokensInReach reach(call);
    for (std::int64_t b = 0; b < gates.shape[0]; ++b) {
      for (std::int64_t h = 0; h < gates.shape[1]; ++h) {
        double sum = 0;
        sums.runs.push_back({});
        for (std::int64_t j = 0; j < gates.shape[2]; ++j) {
          double gate = 0;
          if (call.keeps(b, j)) gate = gates.get(gates.offset(b, h, j));
          if (!(gate <= 0)) {  // what is of no effect may hold anything
            if (reach.has(b, j)) POSENC_CHECK(checked_gate(call.where, name, gate, j));
            gate = 0;
          }
          sum += gate;
          if (sum < -most && j > 0) {
            const bool closed = gate == -std::numeric_limits<double>::infinity();
            sums.runs.push_back(
                {.first = j, .gap = sum, .oldest = closed ? j : sums.runs.back().oldest});
            sum = 0;
          } else if (j == 0) {
            sum = 0;  // no key stands before it
          }
          sums.sum[sums.at(b, h, j)] = sum;
          sums.run[sums.at(b, h, j)] = std::ssize(sums.runs) - 1;
        }
      }
    }
    return sums;
  }
};

// A query's way back through the runs of its head, from its own key on: what its logits get.
class GateWalk {
 public:
  GateWalk() = default;
  GateWalk(const GateSums& sums, std::int64_t b, std::int64_t h, std::int64_t own)
      : sum_(sums.sum.data() + sums.at(b, h, 0)),
        run_(&sums.run_of(sums.at(b, h, own))),
        offset_(sum_[own]) {}

  // give(first, count, sums, offset) of keys [begin, end), cut by runs: the logit of key first + n
  // gets offset − sums[n]. Keys of later calls stand before those of earlier ones; what is behind
  // the own key is any number.
  template <class Give>
  void back_to(std::int64_t begin, std::int64_t end, const Give& give) {
    for (;;) {
      const std::int64_t first = std::max(begin, run_->first);
      if (first < end) give(first, end - first, sum_ + first, offset_);
      if (run_->first <= begin) return;
      end = std::min(end, run_->first);
      offset_ += run_->gap;
      --run_;
    }
  }

 private:
  const double* sum_ = nullptr;
  const GateSums::Run* run_ = nullptr;
  double offset_ = 0;
};

// An offset of GateWalk that leaves room for sums and logits in T, so that nothing finite hides a
// key.
template <class T>
double gate_offset(double offset) {
  constexpr double lowest = static_cast<double>(std::numeric_limits<T>::lowest()) / 2;
  return std::max(offset, lowest);
}

// Gates of the schemes that take some beside what they do, as [batch, heads, keys]; absent where
// none are given.
inline Expected<Tensor> gates_view(const ContentCall& call, std::string_view name,
                                   const Tensor& given) {
  const std::int64_t batch = call.batch(), heads = call.heads(), keys = call.in.keys.size();
  POSENC_TRY(gates, viewed(call.where, name, given, 3));
  if (gates.shape[0] == batch && gates.shape[1] == heads && gates.shape[2] == keys) return gates;
  return fail(call.where,
              std::string(name) + " must be [" + std::to_string(batch) + ", " +
                  std::to_string(heads) + ", " + std::to_string(keys) + "]",
              shape_text(gates), "one for each sequence, query head and key");
}

// What the gates of a head get of the rows' gradients by their logits: a gate gets those of the
// pairs that it stands between, and no sum holds any other. Keys are read in blocks: a whole one
// adds to sums of its keys and says what stands before it; in the one that a row ends in, each gate
// gets its own.
class GateGradients {
 public:
  static std::int64_t size(std::int64_t row) {
    return 2 * row + (row + block_keys - 1) / block_keys;
  }
  // at: `size` numbers, zeros at first.
  GateGradients(double* at, std::int64_t row)
      : keys_(at), gates_(at + row), blocks_(gates_ + row) {}

  // by [count]: by the logits of a row at keys [first, first + count) of one block, times `factor`;
  // before: what those of all earlier keys come to. What they come to with these.
  template <class T>
  double take(std::int64_t first, std::int64_t count, const T* by, T factor, std::int64_t own,
              double before) const {
    T scaled[block_keys];
    for (std::int64_t j = 0; j < count; ++j) scaled[j] = by[j] * factor;
    const std::int64_t block = first / block_keys;
    if (own >= (block + 1) * block_keys - 1) {
      blocks_[block] += before;
      add_to_doubles(scaled, count, keys_ + first);
      constexpr std::int64_t lanes = 4;
      double sums[lanes] = {};
      std::int64_t j = 0;
      for (; j + lanes <= count; j += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane)
          sums[lane] += static_cast<double>(scaled[j + lane]);
      for (; j < count; ++j) sums[0] += static_cast<double>(scaled[j]);
      return before + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
    std::int64_t l = block * block_keys;
    for (; l < first; ++l) gates_[l] += before;
    for (; l <= own; ++l) {
      gates_[l] += before;
      if (l < first + count) before += static_cast<double>(scaled[l - first]);
    }
    return before;
  }
  // A block's gates' gradients are added up from the first on: that of gate j.
  double next(std::int64_t j, double& before) const {
    if (j % block_keys == 0) before = blocks_[j / block_keys];
    const double gradient = before + gates_[j];
    before += keys_[j];
    return gradient;
  }

 private:
  double *keys_, *gates_, *blocks_;
};

// sums [share][GateGradients::size]; share_of(part, b, h) of each part, sequence and head.
template <class ShareOf>
void write_gate_gradients(const BackwardCall& call, const Tensor& wanted, const Tensor& gates,
                          std::vector<double>& sums, const ShareOf& share_of) {
  const std::int64_t row = padded(gates.shape[2]), size = GateGradients::size(row),
                     parts = call.backward.parts;
  std::vector<double> before(static_cast<std::size_t>(parts));
  for (std::int64_t b = 0; b < gates.shape[0]; ++b) {
    for (std::int64_t h = 0; h < gates.shape[1]; ++h) {
      for (std::int64_t j = 0; j < gates.shape[2]; ++j) {
        double gradient = 0;
        for (std::int64_t part = 0; part < parts; ++part)
          gradient += GateGradients(sums.data() + share_of(part, b, h) * size, row)
                          .next(j, before[static_cast<std::size_t>(part)]);
        // Read just before it is written, as both may have one memory.
        const double gate = gates.get(gates.offset(b, h, j));
        const bool learns = call.keeps(b, j) && std::isfinite(gate);
        wanted.set(wanted.offset(b, h, j), learns ? gradient : 0);
      }
    }
  }
}

// Where the gradient of optional gates goes; absent where not wanted. Errors: there are no gates.
inline Expected<Tensor> optional_gate_gradient(const BackwardCall& call, const Tensor& gates) {
  const Tensor& gradient = call.gradients.log_gates;
  if (!gradient) return Tensor{};
  if (!gates)
    return fail(call.where, "the gradient of the log gates needs log gates", "none",
                "leave that gradient absent");
  return gradient_like(call.where, "the gradient of the log gates", gradient, gates);
}

// The running softmax of a tile's rows, with (c_i − c_j) times a factor of the row added to the
// scores, where there are gates.
template <class T>
class ForgetfulSoftmax {
 public:
  // own: of the tile's rows. by_gates [GateGradients::size]: null where not wanted.
  ForgetfulSoftmax(const GateSums* sums, std::int64_t b, std::int64_t h, std::int64_t rows,
                   const std::int64_t* own, double* by_gates = nullptr)
      : sums_(sums), own_(own), by_gates_(by_gates) {
    std::fill_n(factor, most_queries, 1.0);
    for (std::int64_t r = 0; sums != nullptr && r < rows; ++r)
      if (own[r] >= 0) walks_[r] = GateWalk(*sums, b, h, own[r]);
    if (by_gates != nullptr)
      found_.resize(static_cast<std::size_t>((sums->row + block_keys - 1) / block_keys));
  }
  double factor[most_queries];

  T weigh(std::int64_t row, std::int64_t block, std::uint64_t, T* scores) {
    if (!found_.empty()) found(block)[static_cast<std::size_t>(row)] = walks_[row];
    add(row, block, walks_[row], scores);
    return softmax_.fold(row, scores);
  }
  // Blocks come from the first to the last.
  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    GateWalk walk = found_.empty() ? GateWalk() : found(block)[static_cast<std::size_t>(row)];
    add(row, block, walk, scores);
    softmax_.differentiate(row, by_weight, mean, scores, by_score);
    if (by_gates_ == nullptr || own_[row] < 0) return;
    const std::int64_t first = block * block_keys;
    before_[row] = GateGradients(by_gates_, sums_->row)
                       .take(first, std::min(block_keys, sums_->row - first), by_score,
                             static_cast<T>(factor[row]), own_[row], before_[row]);
  }
  T finish(std::int64_t row) const { return softmax_.finish(row); }

 private:
  std::vector<GateWalk>& found(std::int64_t block) {
    auto& rows = found_[static_cast<std::size_t>(block)];
    if (rows.empty()) rows.resize(static_cast<std::size_t>(most_queries));
    return rows;
  }
  void add(std::int64_t row, std::int64_t block, GateWalk& walk, T* scores) const {
    if (sums_ == nullptr || own_[row] < 0) return;
    const std::int64_t start = block * block_keys;
    walk.back_to(start, std::min(start + block_keys, sums_->row),
                 [&](std::int64_t first, std::int64_t count, const double* sum, double offset) {
                   T* const to = scores + (first - start);
                   if (offset == -std::numeric_limits<double>::infinity())
                     return void(std::fill_n(to, count, -std::numeric_limits<T>::infinity()));
                   const double by = factor[row], end = gate_offset<T>(offset * by);
                   for (std::int64_t j = 0; j < count; ++j)
                     to[j] += static_cast<T>(end - sum[j] * by);
                 });
  }

  const GateSums* sums_;
  const std::int64_t* own_;
  double* by_gates_;
  GateWalk walks_[most_queries];
  std::vector<std::vector<GateWalk>> found_;  // [block][row]: before the block, on the way back
  double before_[most_queries] = {};          // Σ of the row's gradients by logits so far
  OnlineSoftmax<T> softmax_;
};

}  // namespace posenc::detail
