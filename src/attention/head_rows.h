// The rows of all heads of a tensor in the number computed with, padded with zeros so that vectors
// may run to their ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "posenc/plan.h"
#include "posenc/tensor.h"
#include "src/kernels/polar.h"
#include "src/kernels/rows.h"

namespace posenc::detail {

// Zeros that start on a cache line.
template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::int64_t count)
      : memory_(new (std::align_val_t{64}) T[static_cast<std::size_t>(count)]()) {}
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  struct Delete {
    void operator()(T* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::unique_ptr<T[], Delete> memory_;
};

// Rows [rows][dim] as a view [batch, heads, seq, columns] of longer rows.
template <class T>
Tensor padded_view(T* rows, std::int64_t batch, std::int64_t heads, std::int64_t seq,
                   std::int64_t columns, std::int64_t dim) {
  Tensor view = Tensor::dense(rows, {batch, heads, seq, dim});
  view.shape[3] = columns;
  return view;
}

// Rows of a tensor [batch, head, seq, columns] as [batch][head][seq_rows][padded(columns)], zeros
// behind them.
template <class T>
Aligned<T> loaded_rows(const Tensor& x, std::int64_t seq_rows) {
  const std::int64_t dim = padded(x.shape[3]);
  Aligned<T> rows(x.shape[0] * x.shape[1] * seq_rows * dim);
  for (std::int64_t n = 0; n < x.shape[0] * x.shape[1]; ++n) {
    load_rows(x, x.offset(n / x.shape[1], n % x.shape[1]), x.shape[2],
              rows.data() + n * seq_rows * dim, dim);
  }
  return rows;
}
// And back, rounded once.
template <class T>
void write_rows(const Aligned<T>& rows, std::int64_t seq_rows, const Tensor& out) {
  const std::int64_t dim = padded(out.shape[3]);
  for (std::int64_t n = 0; n < out.shape[0] * out.shape[1]; ++n) {
    store_rows(rows.data() + n * seq_rows * dim, dim, out.shape[2], T{1}, out,
               out.offset(n / out.shape[1], n % out.shape[1]));
  }
}

// [batch][heads][seq][step], step being padded(columns); absent by default.
template <class T>
class HeadRows {
 public:
  HeadRows() = default;
  static HeadRows zeros(const Tensor& like) {
    HeadRows rows(like);
    rows.numbers_ = Aligned<T>(rows.size());
    return rows;
  }
  static HeadRows loaded(const Tensor& x) {
    HeadRows rows(x);
    rows.numbers_ = loaded_rows<T>(x, x.shape[2]);
    return rows;
  }
  // Made wide where the rotation is polar.
  static HeadRows widened(const Tensor& x, const std::optional<Rotate>& rotate) {
    if (!rotate || !rotate->polar()) return loaded(x);
    Tensor like = x;
    like.shape[3] += rotate->widening();
    HeadRows rows = zeros(like);
    for (std::int64_t b = 0; b < rows.batch(); ++b) {
      for (std::int64_t h = 0; h < rows.heads(); ++h) {
        load_rows(x, x.offset(b, h), rows.seq(), rows.row(b, h), rows.step());
        widen(*rotate, x.shape[3], rows.row(b, h), rows.step(), rows.seq());
      }
    }
    return rows;
  }
  HeadRows copy() const {
    HeadRows rows(shape_);
    rows.numbers_ = Aligned<T>(size());
    std::copy_n(numbers_.data(), size(), rows.numbers_.data());
    return rows;
  }
  // As many columns as out has.
  void store(const Tensor& out) const {
    for (std::int64_t b = 0; b < batch(); ++b)
      for (std::int64_t h = 0; h < heads(); ++h)
        store_rows(row(b, h), step(), seq(), T{1}, out, out.offset(b, h));
  }
  // What is absent adds nothing.
  void add(const HeadRows& other) {
    for (std::int64_t n = 0; other && n < size(); ++n)
      numbers_.data()[n] += other.numbers_.data()[n];
  }

  explicit operator bool() const { return numbers_.data() != nullptr; }
  std::int64_t batch() const { return shape_.shape[0]; }
  std::int64_t heads() const { return shape_.shape[1]; }
  std::int64_t seq() const { return shape_.shape[2]; }
  std::int64_t columns() const { return shape_.shape[3]; }
  std::int64_t step() const { return padded(columns()); }
  T* row(std::int64_t b, std::int64_t h, std::int64_t t = 0) {
    return numbers_.data() + ((b * heads() + h) * seq() + t) * step();
  }
  const T* row(std::int64_t b, std::int64_t h, std::int64_t t = 0) const {
    return numbers_.data() + ((b * heads() + h) * seq() + t) * step();
  }
  Tensor view() { return padded_view(numbers_.data(), batch(), heads(), seq(), columns(), step()); }
  bool finite() const {
    return all_finite(numbers_.data(), step(), batch() * heads() * seq(), step());
  }

 private:
  explicit HeadRows(const Tensor& shape) : shape_(shape) { shape_.data = nullptr; }
  std::int64_t size() const { return batch() * heads() * seq() * step(); }

  Tensor shape_;  // its extents alone
  Aligned<T> numbers_;
};

}  // namespace posenc::detail
