// What an engine's answers to the vectors show: right, wrong by a mistake that has a name, or wrong
// by none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/conform/vectors.h"

namespace posenc::cli::conform {

// What an adapter said to one test.
struct Answer {
  Numbers output = {};
  std::string unsupported = {};  // why the engine has no such thing
  std::string error = {};        // what went wrong in it
};

enum class Outcome { passed, wrong, unsupported, failed };

// A wrong answer, or one of its outputs where each is wrong in a way of its own.
struct WrongPart {
  std::vector<std::string> shows = {};  // mistakes that give it
  std::string mistake = {};             // the one that judge() chose; "": none explains it
};

struct JudgedTest {
  const VectorTest* test = nullptr;
  Outcome outcome = Outcome::passed;
  std::vector<WrongPart> parts = {};
  std::vector<std::string> would = {};  // mistakes that would have shown
  double off = 0;                       // the largest |got − right|; infinite where sizes differ
  std::string why = {};                 // of what is unsupported or failed
  bool explained() const;               // each part has its mistake
  bool shows(std::string_view mistake) const;
};

// A mistake and the tests that show it.
struct Shown {
  std::string mistake;
  std::vector<const JudgedTest*> tests;
  bool everywhere = false;  // every test of the operation that could show it does
};

struct JudgedFile {
  const VectorFile* file = nullptr;
  std::vector<JudgedTest> tests = {};
  std::vector<Shown> shown = {};
  std::size_t count(Outcome outcome) const;
  std::vector<const JudgedTest*> unexplained() const;  // wrong, and no mistake gives that answer
};

JudgedTest judge(const VectorTest& test, const Tolerance& tolerance, const Answer& answer);

// Names for what is wrong: first the mistake that explains most of it, less the right answers in
// which it would have shown. What that leaves is asked again.
JudgedFile judge(const VectorFile& file, std::vector<JudgedTest> tests);

}  // namespace posenc::cli::conform
