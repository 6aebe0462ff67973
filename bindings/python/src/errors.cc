// posenc.Error is raised for what the library refuses.
#include "errors.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace posenc::python {
namespace {

// The library's cures name the command's flags and C++'s functions: what Python calls them.
std::string in_pythons_words(std::string cure) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"set --grid HEIGHTxWIDTH", "pass grid_height= and grid_width="},
      {"(--repeated)", "(repeated=True)"},
      {"say it with --trained", "pass trained="},
      {"say it with --at", "pass at="},
      {"Positions::from_mask", "posenc.positions.from_mask"},
      {"{0, n0, n0 + n1, ...}", "[0, n0, n0 + n1, ...]"},
      {"set VisionRule's fields", "advance=, step= and tokens_per_second="},
      {"set --", "pass --"}};
  for (const auto& [theirs, ours] : words)
    if (const std::size_t at = cure.find(theirs); at != std::string::npos)
      cure.replace(at, theirs.size(), ours);
  constexpr std::string_view pass = "pass --";
  if (!cure.starts_with(pass)) return cure;
  const std::size_t end = std::min(cure.find(' ', pass.size()), cure.size());
  std::string name = cure.substr(pass.size(), end - pass.size());
  std::ranges::replace(name, '-', '_');
  return "pass " + name + "=" + cure.substr(end);
}

// posenc.Error is Python's own class, so that it pickles and subclasses as any other.
void raise(Error error) {
  error.cure = in_pythons_words(std::move(error.cure));
  const nb::object type = nb::module_::import_("posenc.errors").attr("Error");
  const nb::object raised = type(text(error.message()), text(error.where), text(error.rule),
                                 text(error.got), text(error.cure));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Refused& refused) {
      raise(refused.error);
    }
  });
}

}  // namespace posenc::python
