// What a user types: numbers, lists, positions, grids and the fields of every scheme.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "cli/arguments/parse.h"
#include "posenc/schemes.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

using namespace posenc::cli;

constexpr std::string_view where = "--flag";

void one(const std::string& text) {
  const auto whole = integer(text, where);
  if (!whole) check_error(whole.error());
  const auto real = number(text, where);
  if (!real) check_error(real.error());
  must(!whole || (real && *real == static_cast<double>(*whole)), "an integer is a number", text);
  if (whole) must(integer(std::to_string(*whole), where) == *whole, "it is read as written", text);
  if (real) must(std::isfinite(*real), "a number is finite", text);
  if (real) must(number(number_text(*real), where) == *real, "it is read as written", text);
}

void lists(const std::string& text) {
  const auto whole = integers(text, where);
  if (!whole) check_error(whole.error());
  const auto real = numbers(text, where);
  if (!real) check_error(real.error());
  must(!whole || (real && real->size() == whole->size()), "integers are numbers", text);
  if (!real) return;
  for (const double x : *real) must(std::isfinite(x), "a number is finite", text);
  const auto commas = static_cast<std::size_t>(std::ranges::count(text, ','));
  must(real->size() == commas + 1 || (real->empty() && commas == 0), "an entry to each comma",
       text);
}

void rows(const std::string& text) {
  const auto read = integer_rows(text, where);
  if (!read) return check_error(read.error());
  must(read->rows > 0 && std::ssize(read->values) % read->rows == 0, "rows are of one length",
       text);
}

void ids(const std::string& text) {
  const auto read = cli::positions(text, where);
  if (!read) return check_error(read.error());
  const bool patches = text.contains('x');
  must(read->size() > 0 && read->axes() == (patches ? 2 : 1) && read->batch() == 1,
       "one row of positions", text);
  const std::int64_t last = read->at(read->size() - 1);
  must(read->at(0) >= 0 && last >= 0, "no position is negative", text);
  if (text.find(':') != text.npos) {
    const auto again =
        cli::positions(std::to_string(read->at(0)) + ":" + std::to_string(last + 1), where);
    must(again && *again == *read, "a range is read as written", text);
  }
}

void sides(const std::string& text) {
  const auto read = grid(text, where);
  if (!read) return check_error(read.error());
  const auto again = grid(std::to_string(read->height) + "x" + std::to_string(read->width), where);
  must(again && again->height == read->height && again->width == read->width,
       "a grid is read as written", text);
}

// A field's text, set in its scheme: refused, or within the field's range, and compiled or refused.
void fields(std::uint8_t choice, const std::string& text) {
  const auto infos = all_schemes();
  const SchemeInfo& of = infos[choice % infos.size()];
  auto scheme = make_scheme(of.name);
  must(scheme.has_value(), "a scheme is made by its name", of.name);
  for (const FieldInfo& field : of.fields) {
    const auto value = field_value(field, text, where);
    if (!value) {
      check_error(value.error());
    } else if (const auto set = set_field(*scheme, field.name, *value); !set) {
      check_error(set.error());
    }
  }
}

}  // namespace
}  // namespace posenc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc::fuzz;
  Bytes bytes({data, size});
  const std::uint8_t choice = bytes.byte();
  const std::string text(text_of(bytes.rest()));
  switch (choice % 6) {
    case 0: one(text); break;
    case 1: lists(text); break;
    case 2: rows(text); break;
    case 3: ids(text); break;
    case 4: sides(text); break;
    default: fields(choice / 6, text);
  }
  return 0;
}
