// Tensors that an engine showed, a layer each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/npy.h"
#include "posenc/positions.h"

namespace posenc::cli {

struct DumpedLayer {
  std::string name = {};    // "" of a .npy
  std::int64_t layer = -1;  // the first number in its name; -1: none
  Array array =
      {};  // [head][seq][dim] or [batch][head][seq][dim]; rows of all heads as it was said
  std::int64_t heads = 0;                   // of such rows; 0: the array has them as an axis
  std::optional<Positions> positions = {};  // where the file has them

  Expected<Tensor> tensor(std::string_view dtype);
};

struct Dump {
  std::vector<DumpedLayer> layers = {};
  bool repeated = false;  // the file tells that all tokens were the same one
};

// What of a file is wanted.
struct DumpFlags {
  std::string tensor = {};  // a name, * for any part of it; "": all that may be queries or keys
  std::int64_t heads = 0;   // of [seq][heads · dim]; 0: rows are heads
  std::int64_t heads_of_states = 0;  // the same, of state files alone
  std::size_t least_axes = 3;        // of what may be queries or keys; with heads 2
};

// A .npy, safetensors or GGUF file, or a state that llama.cpp saved. Errors: those of the readers,
// no such tensor, heads that do not divide a row, a state file of a prompt that is not one token
// repeated.
Expected<Dump> read_dump(const std::string& path, const DumpFlags& flags);

}  // namespace posenc::cli
