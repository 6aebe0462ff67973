// The web server of `posenc serve`: server.cc where the playground is within the command, else
// no_server.cc.
#pragma once

#include <string>

#include "posenc/error.h"

namespace posenc::cli {

struct Serving {
  std::string host = "127.0.0.1";
  int port = 8137;     // 0: any free one
  bool exact = false;  // this port or none, where it is taken; else one of the next 16
  bool open = false;   // in a browser, through xdg-open
  std::string docs;    // a folder that is shown below /docs/; empty: where it is built or installed
};

// Serves until SIGINT or SIGTERM, then 0. Errors: no playground within, no port to be had, `docs`
// is no site.
Expected<int> serve(const Serving& how);

}  // namespace posenc::cli
