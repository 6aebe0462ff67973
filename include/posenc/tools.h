// What goes wrong with position in engines and files: where two models differ, how far angles are off that
// engines form in float, and the cosines and sines that they store of them; and the random numbers that
// pictures are drawn of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

enum class Severity {
  error,    // the model's text changes
  warning,  // it may, by engine or length
  note,     // good to know: a size that position does not go by, a convention of the format
};
constexpr std::string_view name(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

// What a tool found. docs/doctor.md has every code.
struct Finding {
  std::string code = {};  // stable: "rope_theta"
  Severity severity = Severity::error;
  std::optional<Stack> stack = {};            // absent: of the model as a whole
  std::vector<std::int64_t> layers = {};      // ascending; empty: all
  std::optional<std::int64_t> pair = {};      // the one that is off most
  std::optional<std::int64_t> position = {};  // from here on it shows; absent: everywhere
  std::string expected = {}, found = {};      // the two values, as text
  std::string message = {}, cure = {};        // sentences
  bool operator==(const Finding&) const = default;
};
std::string to_json(const Finding& finding);

// An angle that is off by more than this many radians begins to show.
inline constexpr double angle_that_shows = 0.1;

// Where two models treat position differently, the gravest first: a configuration and what became of it (a
// conversion, another release, a draft model, an adapter's base). Both are compiled as constructed and for
// `length`; 0: the longer of their contexts. Layers are compared in their order. Errors: a length of 0 or more
// is required.
Expected<std::vector<Finding>> differences(const Model& expected, const Model& found,
                                           std::int64_t length = 0);

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
