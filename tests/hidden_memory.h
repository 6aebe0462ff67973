// What a mask hides, filled with what memory that nobody wrote may hold.
#pragma once

#include <cstdint>
#include <cstring>

#include "posenc/attention.h"
#include "src/attention/visible.h"

namespace posenc {

// Element `i` of a tensor becomes, by the remainder of `which`, a NaN, a signalling one, or an
// infinity of either sign.
inline void spoil(const Tensor& x, std::int64_t i, std::int64_t which) {
  const auto put = [&]<class Bits>(Bits nan, Bits signalling, Bits infinity) {
    const Bits each[] = {nan, signalling, infinity,
                         static_cast<Bits>(infinity | Bits{1} << (8 * sizeof(Bits) - 1))};
    std::memcpy(static_cast<char*>(x.data) + i * static_cast<std::int64_t>(sizeof(Bits)),
                &each[which % 4], sizeof(Bits));
  };
  constexpr std::uint64_t infinity = std::uint64_t{0x7FF0} << 48;
  switch (x.dtype) {
    case DType::f64: put(infinity | std::uint64_t{8} << 48, infinity + 1, infinity); break;
    case DType::f32: put(0x7FC00000u, 0x7FA00000u, 0x7F800000u); break;
    case DType::f16:
      put(std::uint16_t{0x7E00}, std::uint16_t{0x7D00}, std::uint16_t{0x7C00});
      break;
    case DType::bf16:
      put(std::uint16_t{0x7FC0}, std::uint16_t{0x7FA0}, std::uint16_t{0x7F80});
      break;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;
  }
}

// The keys and values that no query sees.
inline void spoil_hidden(const AttentionInputs& in) {
  const auto listed = detail::check_keys("", in.mask, in.q.shape[0], in.q.shape[2], in.k.shape[2]);
  const Mask& mask = listed && *listed ? **listed : in.mask;
  for (std::int64_t b = 0; b < in.k.shape[0]; ++b) {
    for (std::int64_t j = 0; j < in.k.shape[2]; ++j) {
      bool hidden = true;
      for (std::int64_t i = 0; i < in.q.shape[2] && hidden; ++i)
        hidden = !detail::visible(mask, in.queries, in.keys, b, i, j);
      for (std::int64_t h = 0; h < in.k.shape[1] && hidden; ++h) {
        for (std::int64_t c = 0; c < in.k.shape[3]; ++c)
          spoil(in.k, in.k.offset(b, h, j, c), j + c);
        for (std::int64_t c = 0; c < in.v.shape[3]; ++c)
          spoil(in.v, in.v.offset(b, h, j, c), j + c);
      }
      const Tensor& profiles = in.profiles.key;
      for (std::int64_t h = 0; profiles && h < profiles.shape[1] && hidden; ++h)
        for (std::int64_t c = 0; c < profiles.shape[3]; ++c)
          spoil(profiles, profiles.offset(b, h, j, c), j + c);
    }
  }
}

}  // namespace posenc
