// CLI11, for those who define flags, and the checks that it lacks. Others forward-declare CLI::App:
// each file that includes CLI11 compiles it anew, for five seconds.
#pragma once

#include <string>
#include <CLI/CLI.hpp>

namespace posenc::cli {

// A whole number above 0; to transform, since it takes 128k and 1e6 too. CLI11's own check tells
// the range in 300 digits.
CLI::Validator above_zero();

// A position, or how many tokens to pass over: as token_count(), and 0.
CLI::Validator position_count();

// A whole number of tokens above 0, also as 128k (131,072), 1M (1,048,576) or 1e6.
CLI::Validator token_count();

// The name of a file for an array: .npy, .safetensors, .csv, .txt, or -
// (write_array() of npy.h).
CLI::Validator array_file();

// OUT, such a file, which must be given.
void add_output(CLI::App& app, std::string& into, const char* doc);

// Whether --no_color was given; every command has the flag.
bool no_color(const CLI::App& app);

}  // namespace posenc::cli
