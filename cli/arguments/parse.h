// Numbers, lists and positions as a command line spells them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/positions.h"

namespace posenc::cli {

// The parts between separators; of an empty text one, empty.
std::vector<std::string_view> split(std::string_view text, char separator);

// A whole number, also as a count is written: "128k" (128 · 1024), "1M" (1024 · 1024), "1e6".
// `where` is the flag an error names.
Expected<std::int64_t> integer(std::string_view text, std::string_view where);
Expected<double> number(std::string_view text, std::string_view where);

// A length above 0: "131072", "128k" (128 · 1024), "1M" (1024 · 1024) or "1e6".
Expected<std::int64_t> tokens(std::string_view text, std::string_view where);

// "0,3,8" or "[0, 3, 8]".
Expected<std::vector<std::int64_t>> integers(std::string_view text, std::string_view where);
Expected<std::vector<double>> numbers(std::string_view text, std::string_view where);

// "0,0,1;1,1,1": rows of one length, or the integers of a .npy file with at most two axes.
struct IntegerRows {
  std::vector<std::int64_t> values;  // row-major
  std::int64_t rows = 1;
};
Expected<IntegerRows> integer_rows(const std::string& text, std::string_view where);

// "0:4096" (the end is not included), "5", "0,2,4", "14x14" (rows and columns of a picture's
// patches, row by row), or ids.npy of shape [seq], [axis][seq] or [axis][batch][seq].
Expected<Positions> positions(const std::string& text, std::string_view where = "--positions");

// "16x24" or "16,24", height first.
struct Grid {
  std::int64_t height = 0, width = 0;
};
Expected<Grid> grid(std::string_view text, std::string_view where);

// A field's value from its text, as the field's kind says.
Expected<FieldValue> field_value(const FieldInfo& field, std::string_view text,
                                 std::string_view where);

}  // namespace posenc::cli
