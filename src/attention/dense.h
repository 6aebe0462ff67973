// A dense copy of a tensor [batch, head, seq, head_dim], in the number that a loop computes with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::detail {

template <class T>
class Dense {
 public:
  Dense() = default;  // absent
  static Dense zeros(const Tensor& like) {
    Dense dense;
    std::copy_n(like.shape.begin(), 4, dense.shape_.begin());
    dense.numbers_.resize(static_cast<std::size_t>(like.size()));
    dense.present_ = true;
    return dense;
  }
  explicit Dense(const Tensor& x) : Dense(zeros(x)) {
    each(x, [&](std::int64_t at, T& number) { number = static_cast<T>(x.get(at)); });
  }
  void copy_to(const Tensor& out) {
    each(out, [&](std::int64_t at, T& number) { out.set(at, static_cast<double>(number)); });
  }

  void scale(T by) {
    for (T& number : numbers_) number *= by;
  }
  // What is absent adds nothing.
  void add(const Dense& other) {
    for (std::size_t n = 0; n < other.numbers_.size(); ++n) numbers_[n] += other.numbers_[n];
  }

  explicit operator bool() const { return present_; }
  std::vector<T>& numbers() { return numbers_; }
  std::int64_t heads() const { return shape_[1]; }
  std::int64_t seq() const { return shape_[2]; }
  std::int64_t dim() const { return shape_[3]; }
  Tensor view() {
    return Tensor::dense(numbers_.data(), {shape_[0], shape_[1], shape_[2], shape_[3]});
  }
  T* row(std::int64_t b, std::int64_t h, std::int64_t t = 0) {
    return numbers_.data() + ((b * shape_[1] + h) * shape_[2] + t) * shape_[3];
  }
  const T* row(std::int64_t b, std::int64_t h, std::int64_t t = 0) const {
    return numbers_.data() + ((b * shape_[1] + h) * shape_[2] + t) * shape_[3];
  }

 private:
  // The offset of every element of `other`, and the number here that belongs to it.
  void each(const Tensor& other, auto&& act) {
    T* next = numbers_.data();
    for (std::int64_t b = 0; b < shape_[0]; ++b) {
      for (std::int64_t h = 0; h < shape_[1]; ++h) {
        for (std::int64_t t = 0; t < shape_[2]; ++t) {
          std::int64_t at = other.offset(b, h, t);
          for (std::int64_t c = 0; c < shape_[3]; ++c, at += other.stride[3]) act(at, *next++);
        }
      }
    }
  }

  std::array<std::int64_t, 4> shape_{};
  std::vector<T> numbers_;
  bool present_ = false;
};

}  // namespace posenc::detail
