// Numbers of a tensor, and how many of them a thread loads and stores at once. Text for the host
// and for the device.
#pragma once

#include "backends/cuda/turns.h"

#ifdef __CUDA_ARCH__
#define POSENC_UNROLL _Pragma("unroll")
#define POSENC_ROLLED _Pragma("unroll 1")
#else
#define POSENC_UNROLL
#define POSENC_ROLLED
#endif

namespace posenc::cuda {

enum class Number : std::int32_t { f64, f32, f16, bf16 };  // as posenc::DType
// 2^it numbers are 16 bytes; a device divides by a shift.
POSENC_DEVICE constexpr std::int32_t word_shift(Number number) {
  return number == Number::f64 ? 1 : number == Number::f32 ? 2 : 3;
}

struct Half {
  using Real = float;
  std::uint16_t bits;
};
struct Bfloat16 {
  using Real = float;
  std::uint16_t bits;
};
struct Single {
  using Real = float;
  float value;
};
struct Double {
  using Real = double;
  double value;
};

POSENC_DEVICE float real(Single x) { return x.value; }
POSENC_DEVICE double real(Double x) { return x.value; }
POSENC_DEVICE void put(Single& out, float x) { out.value = x; }
POSENC_DEVICE void put(Double& out, double x) { out.value = x; }

// One instruction each on the device; on the host the same by integers, NaN as there: 0x7fff.
#ifdef __CUDA_ARCH__
POSENC_DEVICE float real(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
POSENC_DEVICE float real(Bfloat16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}
POSENC_DEVICE void put(Half& out, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}
POSENC_DEVICE void put(Bfloat16& out, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}
#elif defined(__HIP__)
POSENC_DEVICE float real(Half x) { return __builtin_bit_cast(_Float16, x.bits); }
POSENC_DEVICE float real(Bfloat16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}
POSENC_DEVICE void put(Half& out, float x) {
  out.bits = __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(x));
}
POSENC_DEVICE void put(Bfloat16& out, float x) {
  out.bits = __builtin_bit_cast(std::uint16_t, static_cast<__bf16>(x));
}
#else
float real(Half x);
float real(Bfloat16 x);
void put(Half& out, float x);
void put(Bfloat16& out, float x);
#endif

// Calls `work` with a number of the type.
template <class Work>
void with_number(Number number, const Work& work) {
  switch (number) {
    case Number::f64: return work(Double{});
    case Number::f32: return work(Single{});
    case Number::f16: return work(Half{});
    case Number::bf16: return work(Bfloat16{});
  }
}

// 16 bytes, loaded and stored at once.
template <class T>
struct alignas(16) Word {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

// Some numbers side by side, loaded and stored at once: 16 bytes by one instruction, which clang
// makes of no struct of numbers.
template <class Piece>
POSENC_DEVICE Piece load(const void* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Piece) == sizeof(uint4)) {
    const uint4 bits = *static_cast<const uint4*>(from);
    Piece piece;
    __builtin_memcpy(&piece, &bits, sizeof bits);
    return piece;
  }
#endif
  return *static_cast<const Piece*>(from);
}
template <class Piece>
POSENC_DEVICE void store(void* to, Piece piece) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Piece) == sizeof(uint4)) {
    uint4 bits;
    __builtin_memcpy(&bits, &piece, sizeof bits);
    *static_cast<uint4*>(to) = bits;
    return;
  }
#endif
  *static_cast<Piece*>(to) = piece;
}

}  // namespace posenc::cuda
