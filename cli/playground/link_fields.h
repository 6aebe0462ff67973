// The keys of a playground link and the rules of their values, from web/link.json, which the
// playground reads too. A value is kept as the text that a link holds, spelled as JavaScript spells
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc::cli {

enum class LinkKind { number, text, boolean, choice, numbers, words };

struct LinkField {
  std::string key;
  LinkKind kind;
  std::string default_value;  // lists with commas, booleans 0 or 1
  double least, most, step;
  std::string choices;  // with commas between, "" where any
  std::string unit, doc;
};

// What a scaling's field is where the link does not say it: a number, or "ratio" (target over
// trained), "trained", "longest"; "" where it is left alone.
struct LinkFollows {
  std::string field, scaling;  // "any": of all others
  std::string what;
};

struct LinkRules {
  std::int64_t version;
  std::size_t most_entries;     // of a list
  std::size_t most_characters;  // of a text: UTF-16 units, as JavaScript counts
  std::vector<std::string> panels;
  // Keys that are also fields of schemes, under that name or alias.
  std::vector<std::string> shared;
  std::vector<LinkField> fields;  // in the order of a link
  std::vector<LinkFollows> follows;
};
const LinkRules& link_rules();

std::string_view what_follows(std::string_view scaling, std::string_view field);

std::int64_t link_version();
std::vector<std::string_view> link_panels();
std::span<const LinkField> link_fields();
std::optional<std::size_t> find_link_field(std::string_view key);  // its place in link_fields()

// A number as JavaScript's String() writes it: "10000000", "0.1", "1e-7".
std::string script_number(double number);

// A finite decimal number, with white space around it as JavaScript's Number() allows; nothing
// else.
std::optional<double> read_script_number(std::string_view text);

std::vector<std::string_view> comma_separated(std::string_view text);  // none of ""

// The default, as a link would write it.
std::string default_of(const LinkField& field);

// What a user asks for. Errors name the range, the choices or the nearest word.
Expected<std::string> asked_value(const LinkField& field, std::string_view text,
                                  std::string_view where);

// What a link says, brought into range as the playground does; nothing where it cannot be read.
std::optional<std::string> nearest_value(const LinkField& field, std::string_view text);

// "0 to 2047 tokens", "halves or interleaved", "yes or no": for help and messages.
std::string range_of(const LinkField& field);

}  // namespace posenc::cli
