// Windows' sockets are others; a server there is asked from a system that has POSIX's.
#include "cli/probe/http.h"

namespace posenc::cli {

Expected<HttpAnswer> request(const Url& url, std::string_view, std::string_view, std::string_view,
                             const HttpLimits&) {
  return fail("probe", "needs the sockets of POSIX", url.host, "run it in WSL");
}

}  // namespace posenc::cli
