// Frequencies as fractions of a turn in fixed point, for kernels of one's own: whole turns do not
// matter, so that position · turns in integers, modulo 1, is the whole reduction of an angle, at
// any position, with the same bits in every language. C++20, for compilers of devices too.
#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] posenc {

// A frequency as a fraction of a turn per position, 128 bits behind the point.
struct alignas(16) Turns {
  std::uint64_t high = 0, low = 0;  // (high · 2^64 + low) · 2^-128 turns per position
};

// frequency / 2π modulo 1, rounded to 2^-128 turns. frequency is finite and below 2^200; radians
// per position.
Turns turns_of(double frequency);

}  // namespace posenc
