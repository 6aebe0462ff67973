// Statements computed here: the bits that a target's must be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/emit/program.h"

namespace posenc::emitting {

// Arrays by name, whole and in the order of their shape; names that the frame has.
struct Memory {
  std::map<std::string, Constant> arrays;
  std::map<std::string, std::uint32_t> names;  // those of statements come here too
};

void run(const Statements& statements, Memory& memory);

}  // namespace posenc::emitting
