// A plan as the text of a small kernel in another language, with the plan's numbers in it and its
// own test: rotation by angles of any position that are exact to a float, and biases by distance.
// Whoever reads the text needs nothing of posenc. All targets print one description of the
// computation, in integers of 32 bits up to the cosine, so that all give the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/plan.h"

namespace [[gnu::visibility("default")]] posenc {

// A language that a plan is written in.
struct EmitTarget {
  std::string_view name;    // "triton"
  std::string_view title;   // "Triton, a module of Python"
  std::string_view ending;  // of a file: ".py"
};
std::span<const EmitTarget> emit_targets();

// What of a text the plan does not say.
struct EmitOptions {
  std::int64_t head_dim = 0;  // channels of a head; 0: as many as the rotation reaches
  std::int64_t heads = 0;     // of a bias whose heads share a table; 0: one
  std::string title = {};     // what the plan is, for the first line
  std::string source = {};    // who published it: "Su et al. 2021, arXiv:2104.09864"
  // Where its test asks for cosines and sines; empty: a few positions of both signs, up to 2^40.
  std::vector<std::int64_t> positions = {};
  bool every_pair = false;  // its test asks for all pairs, else for a few
};

// The text of a plan's kernel and of its test, in the language of a target.
// Errors: no such target; a plan with neither a rotation nor a bias; what the target or the room
// "emit" does not take; a table too long for a text.
Expected<std::string> emit(const Plan& plan, std::string_view target,
                           const EmitOptions& options = {});

}  // namespace posenc
