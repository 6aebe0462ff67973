// Random numbers in place of what nobody gave: queries and keys, and what a scheme has learned;
// randomize() of content.h draws for those that read the content. The playground draws the same for
// the same seed (web/src/compute/scores.ts), so that its commands give its numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/plan.h"
#include "posenc/schemes.h"

namespace posenc::cli {

// What differs between random tokens: the words of --content.
enum class Words { random, alike, same, equal };
Words words_named(std::string_view name);

// [head][token][head_dim] of queries or keys. alike: one vector at every place; same: one for
// queries and keys; equal: ones.
std::vector<double> random_vectors(Words words, bool keys, std::uint64_t seed, std::int64_t heads,
                                   std::int64_t length, std::int64_t head_dim);

// Of Transformer-XL, whose table follows from them: W_R of variance 1/width, u and v. Of others
// nothing.
void fill_learned(Scheme& scheme, std::uint64_t seed, const Geometry& geometry);
// Fills the tables that are missing, each with the next numbers of one sequence.
void fill_learned(Plan& plan, std::uint64_t seed, std::int64_t heads, std::int64_t head_dim);

}  // namespace posenc::cli
