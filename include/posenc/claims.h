// What is said about positional encodings, checked: every claim is data beside a function that
// computes whether it holds. The command, the documentation, bindings and the browser show the same
// list. It is the library posenc::claims (-lposenc_claims), which stands on posenc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc {

enum class Verdict {
  right,
  sloppy,
  wrong,
  // by training small models, which neither proves nor refutes what is said of large ones
  measured,
  unchecked,
};
std::string_view name(
    Verdict verdict);  // "true", "sloppy", "wrong", "measured in small", "not checkable here"

// One number that decides. A residual is the distance between a statement and what was computed;
// the tolerance is what rounding may explain. For the counter-example of a wrong statement the
// residual must lie outside.
struct Measure {
  std::string what = {};
  double residual = 0;
  double tolerance = 0;
  bool inside = true;
  bool agrees() const { return inside ? residual <= tolerance : residual > tolerance; }
};

// What a check computed, in a sentence and in the numbers that decide.
struct Evidence {
  std::string computed = {};  // a sentence with the numbers found, the same on every machine
  std::string machine = {};   // what differs between machines: times, a C library's float rounding
  std::vector<Measure> measures = {};  // the deciding one first; all must agree
};

// A statement, who makes it, whether it holds, and the check that computes this.
struct Claim {
  int row = 0;      // claims of one subject share a row
  char part = 'a';  // and differ in the letter
  std::string_view group = {};
  std::string_view statement = {};  // in our words
  std::string_view texts = {};      // "S0 S4": who says it, see claim_texts()
  Verdict verdict = Verdict::right;
  std::string_view correct = {};            // what holds, in one line
  std::string_view formula = {};            // "" where there is none
  std::string_view paper = {};              // arXiv number, "" where there is none
  std::string_view reproduce = {};          // a posenc command or calls of the library
  Expected<Evidence> (*check)() = nullptr;  // null: no computation decides, `correct` says why
  std::string_view measured =
      {};  // of Verdict::measured: what `posenc lab` found, with its interval

  std::string number() const { return std::to_string(row) + part; }  // "4b"
};

// A text that makes claims: the name that Claim::texts uses, what it is about, and its own title.
struct ClaimText {
  std::string_view name, about, title;
};
std::span<const ClaimText> claim_texts();  // S0 to S4
std::span<const Claim> all_claims();       // by number

// A claim with what its check found. `agrees`: the computation supports the verdict; always true of
// what no computation decides.
struct Verified {
  const Claim* claim = nullptr;
  Evidence finding = {};
  bool agrees = false;
  double seconds = 0;
};
Verified verify(const Claim& claim);

// "57 claims: 25 true, …; all computations agree with these verdicts", or the numbers that do not.
std::string summary(std::span<const Verified> results);

// docs/json.md; one array, an object a claim.
std::string to_json(std::span<const Verified> results);

// docs/claims.md: the claims of each text. Without what differs between machines.
std::string to_markdown(std::span<const Verified> results);

}  // namespace posenc
