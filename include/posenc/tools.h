// Beside encodings: how far the angles are off that engines form in float, and the cosines and sines that
// they store of them; and the random numbers that pictures are drawn of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

// Cosines and sines as an engine keeps them for tensors of a type.
struct KeptError {
  DType dtype = DType::f32;
  std::vector<double> error = {};  // [mark], largest of a cosine or sine
};

// What one engine is off, or one of the slips in 16 bits that are known.
struct EngineError {
  std::string_view id, name;
  std::string refused = {};        // why the engine cannot rotate so; then there is nothing below
  std::vector<double> phase = {};  // [mark], radians, largest of an angle
  std::vector<KeptError> kept = {};
  // First position with an angle off by more than the type rounds a cosine; absent: none up to the end.
  std::optional<std::int64_t> beyond_half = {}, beyond_bfloat16 = {};
};

// Errors up to some lengths, the marks.
struct PhaseErrors {
  static constexpr std::int64_t window = 1024;
  std::vector<std::int64_t> marks = {};  // each measured in the `window` positions before it
  std::vector<EngineError> engines = {};
};

inline constexpr double half_rounding = 0x1p-12,
                        bfloat16_rounding = 0x1p-9;  // of numbers from 1/2 to 1

// Up to which length errors are measured: what is asked, else 2^20, or where the plan ends.
std::int64_t phase_end(const Plan& plan, std::int64_t asked);
// 1,024, 4,096, ... below the end, and the end.
std::vector<std::int64_t> usual_marks(std::int64_t end);

// Of a group whose first scheme is RoPE, compiled for `asked` (0: as constructed), against long double.
// `tell` hears how much is done, 0 to 1. Errors: no RoPE, what compile() says.
Expected<PhaseErrors> phase_errors(const LayerGroup& group, std::int64_t asked,
                                   std::vector<std::int64_t> marks,
                                   const std::function<void(double)>& tell = {});

// Numbers first, first + 1, … of a sequence of standard normal ones. Number i depends on seed and i alone
// (splitmix64, then Box and Muller), on every machine, but for the last bits of log and cos: what
// `posenc plot` and the playground take for queries, keys and learned tables that nobody gives.
std::vector<double> normals(std::uint64_t seed, std::int64_t count, std::int64_t first = 0);

}  // namespace posenc
