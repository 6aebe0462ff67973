// A view of the playground, and the link that holds it: `#/rope?v=1&m=11`. What is written here is
// byte for byte what web/src/state/link.ts writes (web/test/links.json holds both to it); the rules
// of both are in web/link.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc::cli {

struct LinkSetting {
  std::string name, value;
  bool operator==(const LinkSetting&) const = default;
};

struct View {
  std::string panel;
  std::vector<std::string> values;  // one for each of link_fields()
  // The scheme's and the scaling's own fields, in the link's order.
  std::vector<LinkSetting> scheme = {}, scaling = {};
  bool operator==(const View&) const = default;

  const std::string& operator[](std::string_view key) const;  // a key of link.json
  double number(std::string_view key) const;                  // of one that holds a number
  bool is_default(std::string_view key) const;
};

// The first panel with every default.
View default_view();

// The view's fragment, defaults left out.
std::string format_link(const View& view);

// Whether the text is a link, and no file's name.
bool is_link(const std::string& text);

struct ReadLink {
  View view;
  std::vector<std::string> stated;  // the keys that the link gives, in link.json's order
  std::vector<std::string> notes;   // what was left out or brought into range
};

// Any text that holds `#/panel?v=1…`. Errors: no link, one of a newer version, one longer than 64
// KiB.
Expected<ReadLink> read_link(std::string_view text);

// "version": …, "panel": …, "values": {…}, "scheme": {…}, "scaling": {…}, the inside of an object:
// every value, defaults too.
std::string view_json(const View& view);

}  // namespace posenc::cli
