// A report card: what an engine's answers to the vectors show.
#pragma once

#include <span>
#include <string>

#include "cli/conform/adapter.h"
#include "cli/conform/judge.h"
#include "cli/pages/terminal.h"

namespace posenc::cli::conform {

struct Card {
  std::string engine, version;
  DType dtype = DType::f32;
  std::span<const JudgedFile> files;
  const Vectors* vectors = nullptr;
  double seconds = 0;  // of the engine's own answers
};

std::string conform_page(const Card& card, const Terminal& term);
std::string conform_json(const Card& card);   // docs/schemas/conform.schema.json
std::string conform_junit(const Card& card);  // XML, a case a test
// The exit code: 0 where all that was answered is right but for precision, 2 where nothing was.
int exit_code(const Card& card);

}  // namespace posenc::cli::conform
