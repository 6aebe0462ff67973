// Biases by distance written out, for attentions that take a mask alone: the kernel's text. One
// thread owns some keys of one query, in every head.
#pragma once

#include "backends/cuda/tokens.h"
#include "posenc/device_bias.h"

namespace posenc::cuda {

struct BiasCall {
  DeviceBias<double> bias = {};
  void* out = nullptr;  // [head][query][key], strides in elements
  std::int64_t out_head = 0, out_query = 0, out_key = 0;
  Number number = Number::f32;
  bool wide = false;  // vectors of 16 bytes, of keys that are not packed
  std::int32_t heads = 0;
  Tokens queries = {}, keys = {};
};

POSENC_DEVICE std::int64_t units_of(const BiasCall& call) {
  return call.keys.count >> (call.wide ? word_shift(call.number) : 0);
}

template <class T, int count>
POSENC_DEVICE void write_bias(const BiasCall& call, std::int64_t query, std::int64_t key) {
  struct alignas(count * sizeof(T)) Piece {
    T at[count];
  };
  const std::int64_t stands = position_of(call.queries, 0, query, query);
  std::int64_t distance[count];
  POSENC_UNROLL for (int i = 0; i < count; ++i) distance[i] =
      stands - position_of(call.keys, 0, key + i, key + i);
  POSENC_ROLLED for (std::int32_t head = 0; head < call.heads; ++head) {
    Piece piece{};
    POSENC_UNROLL for (int i = 0; i < count; ++i)
        put(piece.at[i], static_cast<typename T::Real>(call.bias(head, distance[i])));
    store(static_cast<T*>(call.out) + head * call.out_head + query * call.out_query +
              key * call.out_key,
          piece);
  }
}

template <class T>
POSENC_DEVICE void bias_at(const BiasCall& call, std::int64_t query, std::int64_t unit) {
  if (query >= call.queries.count) return;
  if (call.wide)
    write_bias<T, Word<T>::size>(call, query, unit * Word<T>::size);
  else
    write_bias<T, 1>(call, query, unit);
}

}  // namespace posenc::cuda
