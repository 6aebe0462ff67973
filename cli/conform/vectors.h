// Test vectors of position (vectors/README.md): those that travel with the command, or a folder's.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <nlohmann/json.hpp>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace posenc::cli::conform {

// |got − right| ≤ absolute + relative·|right|
struct Tolerance {
  double absolute = 0, relative = 0;
};

// Outputs by name, in row-major order; NaN where nothing is asked.
using Numbers = std::map<std::string, std::vector<double>, std::less<>>;

struct VectorTest {
  std::string id, about;
  nlohmann::json input;
  Numbers output;
  std::map<std::string, Numbers, std::less<>> mistakes;  // the outputs that a mistake changes
  std::map<std::string, Numbers, std::less<>> within;    // so near the right ones is a mistake, too
};

struct VectorFile {
  std::string operation, about;
  std::array<Tolerance, 4> tolerance;  // by DType
  std::vector<VectorTest> tests;
  const Tolerance& of(DType dtype) const { return tolerance[static_cast<std::size_t>(dtype)]; }
};

// What an engine that gives a wrong answer does.
struct NamedMistake {
  std::string title, cure, report;
  bool loss = false;  // right but for precision
};

struct Vectors {
  std::vector<VectorFile> files;
  std::map<std::string, NamedMistake, std::less<>> mistakes;
};

// Every number of a value, row-major, however deep its lists; nothing: it holds something else.
std::optional<std::vector<double>> numbers(const nlohmann::json& value);

// The text of a member; "" where it has none.
std::string word(const nlohmann::json& of, const char* key);

// Of an empty folder's name, the vectors of this posenc. Errors: files that are not there or not as
// their schema has them.
Expected<Vectors> read_vectors(const std::string& folder);

// The texts that the build embeds, by the name of their file: "rotate.json".
struct EmbeddedText {
  std::string_view file, text;
};
std::vector<EmbeddedText> embedded_vectors();

}  // namespace posenc::cli::conform
