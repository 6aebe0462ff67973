// Where tokens stand, when the rotation is known: each token's pairs are turned by one angle a
// pair, and of all positions one makes these angles. A cache that was merged, wrapped, shifted or
// padded shows as a jump.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "posenc/features.h"
#include "posenc/identify.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/identify/dump.h"

namespace posenc {
namespace {

using detail::ChannelPair, detail::Dump, detail::grouped;

// Tokens that stand one after the other.
struct Run {
  std::int64_t token = 0, position = 0, count = 0;
};

class Solver {
 public:
  Solver(const Dump& dump, const Rotate& rotate, std::int64_t furthest)
      : dump_(dump), rotate_(rotate), furthest_(furthest) {
    const Slice& slice = rotate.slice;
    const std::int64_t pairs = rotate.pairs(), in_block = pairs / slice.blocks;
    for (std::int64_t r = 0; r < pairs; ++r) {
      const std::int64_t block = r / in_block, k = r % in_block;
      const bool neighbours = slice.pairing == Pairing::interleaved;
      const std::int64_t a = slice.first_dim + 2 * block * in_block + (neighbours ? 2 * k : k);
      const ChannelPair pair{.a = a, .b = a + (neighbours ? 1 : in_block)};
      turnings_.push_back(detail::turning(dump, pair));
    }
  }

  // Nothing: in some token no position explains the angles.
  std::optional<std::vector<std::int64_t>> run() const {
    std::vector<std::int64_t> at;
    std::int64_t searched = 0;
    for (std::int64_t t = 0; t < dump_.tokens; ++t) {
      const std::int64_t next = at.empty() ? 0 : at.back() + 1;
      if (explains(t, next)) {
        at.push_back(next);
        continue;
      }
      // A search costs as much as thousands of tokens: a text has few jumps.
      if (++searched > most_jumps) return std::nullopt;
      const auto found = search(t);
      if (!found) return std::nullopt;
      at.push_back(*found);
    }
    return at;
  }

 private:
  static constexpr std::int64_t most_jumps = 64;
  static constexpr double clean = 0.995;  // mean cosine of what angles are off

  double agreement(std::int64_t token, std::int64_t position) const {
    double sum = 0;
    for (std::size_t r = 0; r < turnings_.size(); ++r)
      sum +=
          std::cos(turnings_[r].angle[static_cast<std::size_t>(token)] -
                   rotate_.at(0, 0, static_cast<std::int64_t>(r)) * static_cast<double>(position));
    return sum / static_cast<double>(turnings_.size());
  }
  bool explains(std::int64_t token, std::int64_t position) const {
    return agreement(token, position) > clean;
  }

  std::optional<std::int64_t> search(std::int64_t token) const {
    std::int64_t best = 0;
    double most = -1;
    for (std::int64_t p = -furthest_; p <= furthest_; ++p) {
      const double score = agreement(token, p);
      // Nearer positions first, of those that slow pairs cannot tell apart.
      if (score > most + 1e-9 || (score > most - 1e-9 && std::abs(p) < std::abs(best)))
        most = std::max(most, score), best = p;
    }
    return most > clean ? std::optional(best) : std::nullopt;
  }

  const Dump& dump_;
  const Rotate& rotate_;
  const std::int64_t furthest_;
  std::vector<detail::Turning> turnings_;
};

std::vector<Run> runs_of(const std::vector<std::int64_t>& at) {
  std::vector<Run> runs;
  for (std::int64_t t = 0; t < std::ssize(at); ++t) {
    const std::int64_t p = at[static_cast<std::size_t>(t)];
    if (!runs.empty() && p == runs.back().position + runs.back().count)
      ++runs.back().count;
    else
      runs.push_back({t, p, 1});
  }
  return runs;
}

std::string words(const Run& run) {
  const auto span = [](std::int64_t from, std::int64_t count) {
    return count == 1 ? grouped(from) : grouped(from) + "–" + grouped(from + count - 1);
  };
  return (run.count == 1 ? "token " : "tokens ") + span(run.token, run.count) + " at " +
         span(run.position, run.count);
}

// Behind the second run, the first that does not go on from the one before, but earlier.
std::vector<Run>::const_iterator first_backwards(const std::vector<Run>& runs) {
  for (auto run = runs.begin() + std::min<std::ptrdiff_t>(2, std::ssize(runs)); run != runs.end();
       ++run)
    if (run->position < std::prev(run)->position + std::prev(run)->count) return run;
  return runs.end();
}

// Every token at one position, or every one from some token on.
std::optional<Finding> that_stand_still(const std::vector<Run>& runs) {
  const Run &first = runs[0], &second = runs[1];
  Finding finding{
      .code = "positions_constant", .severity = Severity::error, .position = second.token};
  const bool alike = std::ranges::all_of(
      runs, [&](const Run& run) { return run.count == 1 && run.position == first.position; });
  const std::int64_t last = first.position + first.count - 1;
  const bool stands_still = std::ranges::all_of(runs.begin() + 1, runs.end(), [&](const Run& run) {
    return run.count == 1 && run.position == last;
  });
  if (alike && first.position == 0) {
    finding.message =
        "nothing turned: every token is rotated for position 0, or the layer does not rotate, or "
        "both tensors were taken on the same side of the rotation";
    finding.cure =
        "hand position_ids on to the rotation; posenc explain tells which layers rotate at all";
  } else if (alike) {
    finding.message = "every token is rotated for one position";
    finding.cure = "hand position_ids on to the rotation";
  } else if (stands_still && first.count > 1) {
    finding.message = "from token " + grouped(second.token) + " on every token is rotated for " +
                      grouped(last) +
                      ", where the text before ends: the position stands still while decoding";
    finding.cure =
        "count each new token's position by the cache's length (cache_position, position_ids of "
        "one more)";
  } else {
    return std::nullopt;
  }
  return finding;
}

// How often the start of each chunk was added to its positions; 1: not more than once.
std::int64_t starts_counted(const std::vector<Run>& runs) {
  if (runs.size() < 2 || runs[0].token != 0 || runs[0].position != 0) return 1;
  const std::int64_t times = runs[1].position / runs[1].token;
  const bool all =
      std::ranges::all_of(runs, [&](const Run& run) { return run.position == times * run.token; });
  return all ? times : 1;
}

void tell_starts(const std::vector<Run>& runs, std::int64_t times, Finding& finding) {
  const std::string often = times == 2 ? "twice" : grouped(times) + " times";
  finding.code = "chunk_starts";
  finding.message = "each chunk begins at " + often + " its place (token " +
                    grouped(runs[1].token) + " at " + grouped(runs[1].position) + ", token " +
                    grouped(runs[2].token) + " at " + grouped(runs[2].position) +
                    "): its start was added " + often +
                    ", as where ids count from the text's beginning and the cache's length is "
                    "added once more";
  finding.cure = "add the offset once: ids that count from the beginning of the text need none";
}

// `alone`: no other jump follows.
void tell_gap(std::int64_t jump, const std::string& at, bool alone, Finding& finding) {
  const bool by_one = jump == 1 && alone;
  finding.code = "positions_gap";
  finding.message = at + "they go on " + grouped(jump) + " later" +
                    (by_one ? ", as where decoding begins there and takes the cache's length "
                              "after the new token was added; else"
                            : ",") +
                    " as where tokens were dropped from a cache and the rest stayed "
                    "rotated, or where a prefix of another text was reused";
  finding.cure =
      (by_one ? "read the cache's length before the new token is added to it; " : "") +
      std::string("right where an engine keeps positions; else rotate the later keys back by ") +
      grouped(jump) + " (posenc rekey)";
}

// The kind of slip that has left such runs, and the token at which positions jump.
Finding slip(const std::vector<Run>& runs, std::int64_t tokens) {
  Finding finding{.severity = Severity::error};
  for (std::size_t i = 0; i < std::min<std::size_t>(runs.size(), 4); ++i)
    finding.found += (i == 0 ? "" : ", ") + words(runs[i]);
  if (runs.size() > 4) finding.found += " …";
  if (runs.size() == 1) {
    finding.code = "positions_shifted";
    finding.position = 0;
    finding.message = "every token is rotated for a position " + grouped(runs[0].position) +
                      " from where it is said to stand";
    // As many as there are: the cache had counted them already.
    finding.cure = runs[0].position == tokens
                       ? "read the cache's length before these tokens are added to it"
                       : "count positions from the first token of the text, not of a chunk or a "
                         "cache";
    return finding;
  }
  const Run &first = runs[0], &second = runs[1];
  finding.position = second.token;
  const std::int64_t jump = second.position - (first.position + first.count);
  const std::string at = "positions jump at token " + grouped(second.token) + ": ";
  const bool padded =
      first.count == 1 && runs.size() > 2 && second.count == 1 && second.position == first.position;
  if (auto still = that_stand_still(runs)) {
    still->found = finding.found;
    return *std::move(still);
  }
  if (padded) {
    const auto text = std::ranges::find_if(runs, [](const Run& run) { return run.count > 1; });
    finding.code = "padding";
    const std::string shared = "the first " + grouped(text == runs.end() ? 1 : text->token) +
                               " tokens share one position, as padding on the left does";
    // As transformers counts by the mask: padding at 1, and the text from 0 on.
    if (text != runs.end() && text->position == 0 && std::next(text) == runs.end()) {
      finding.severity = Severity::note;
      finding.message = shared + "; the text behind it stands at 0 to " + grouped(text->count - 1) +
                        ", as it should";
      return finding;
    }
    finding.message = at + shared;
    finding.cure = "leave padding out of the dump, or count positions by the attention mask";
  } else if (second.position == first.position) {
    finding.code = "positions_restart";
    finding.message = at +
                      "they begin anew there, as in caches of two texts that were put together, "
                      "or in a chunk that is counted from 0";
    finding.cure = "rotate the second part's keys on by " + grouped(first.count) +
                   " (posenc rekey), or fill the cache with the whole text";
  } else if (jump < 0 && first.count + second.count == tokens &&
             second.position + second.count == first.position) {
    finding.code = "positions_wrapped";
    finding.message = at + "a ring buffer of " + grouped(tokens) +
                      " slots: the newest tokens stand in the first slots";
    finding.cure = "read a token's position from the cache, not from its slot";
  } else if (runs.size() == 3 && runs[2].position + runs[2].count == second.position &&
             first.position + first.count <= runs[2].position) {
    finding.code = "positions_wrapped";
    finding.message = at + "a ring buffer of " + grouped(tokens - first.count) +
                      " slots behind the first " + grouped(first.count) +
                      " tokens, which are kept: the newest tokens stand at its beginning";
    finding.cure = "read a token's position from the cache, not from its slot";
  } else if (const auto back = first_backwards(runs); jump > 0 && back != runs.end()) {
    const Run& before = *std::prev(back);
    const std::int64_t next = before.position + before.count;
    const bool counted = back->position == back->token;
    finding.code = "positions_jump";
    finding.position = back->token;
    finding.message = "positions go back by " + grouped(next - back->position) + " at token " +
                      grouped(back->token) + ", behind one at " + grouped(next - 1) +
                      (counted ? ": new tokens are counted by the keys that were kept, and not by "
                                 "the text, so that they stand among or before older ones"
                               : "");
    finding.cure = "rotate token " + grouped(back->token) + " for position " + grouped(next) +
                   (counted ? ": an evicting cache must count its tokens apart from its keys" : "");
  } else if (const std::int64_t times = starts_counted(runs); times > 1 && runs.size() > 2) {
    tell_starts(runs, times, finding);
  } else if (jump > 0) {
    tell_gap(jump, at, runs.size() == 2, finding);
  } else {
    finding.code = "positions_jump";
    constexpr std::int64_t most_guesses = 16;  // of a draft, in one step
    finding.message = at + "they go on " + grouped(-jump) + " earlier";
    finding.cure = "count positions from the first token of the text";
    if (-jump <= most_guesses)
      finding.cure +=
          "; where a draft guesses, take the keys of refused guesses out of the cache, which were "
          "written here";
  }
  return finding;
}

// Zeros in front and all others behind their slots by as many: padding on the left, whose tokens
// are counted by the mask. Nothing is wrong then but a query that is counted by the slots.
Finding padded_by_zeros(const std::vector<std::int64_t>& at, std::int64_t zeros) {
  const std::int64_t slots = zeros + std::ssize(at), last = at.back();
  const auto span = [](std::int64_t from, std::int64_t to) {
    return grouped(from) + "–" + grouped(to);
  };
  return {.code = "padding",
          .severity = Severity::note,
          .position = zeros,
          .found = "slots " + span(zeros, slots - 1) + " hold positions " + span(at.front(), last),
          .message = grouped(zeros) +
                     " behind their slot, as padding on the left leaves them where "
                     "the attention mask counts: the next query belongs at " +
                     grouped(last + 1) + ", not at " + grouped(slots),
          .cure = "count the next token's position by the mask, not by the cache's length"};
}

// Keys that are rotated rightly and stand in another order: no fault of a cache for a window, if
// its mask goes by positions.
void excuse_ring(const LayerGroup& group, Finding& slip) {
  if (slip.code != "positions_wrapped" || !group.window) return;
  slip.severity = Severity::note;
  slip.message += ", as a cache for a window of " + grouped(*group.window) +
                  " may have them: right where the mask goes by positions and not by slots";
}

}  // namespace

Expected<std::optional<SolvedPositions>> solve_positions(const RotationDump& from,
                                                         const Model& model, std::int64_t layer,
                                                         std::int64_t length) {
  const LayerGroup* group = find_group(model, std::max<std::int64_t>(layer, 0), Stack::text);
  if (!group || from.positions.axes() != 1) return std::nullopt;
  POSENC_TRY(plan, compile(*group, length));
  if (!plan.rotate || plan.rotate->frequencies.axes != 1 || plan.rotate->frequencies.heads != 1 ||
      !rooms::identify.refused(features(plan)).empty())
    return std::nullopt;
  POSENC_TRY(dump, detail::read_dump(from));
  if (plan.rotate->slice.first_dim + plan.rotate->slice.rotary_dim > dump.dim) return std::nullopt;
  // As far as twice the model's context, or the dump's own positions.
  constexpr std::int64_t most = 1 << 18;
  std::int64_t furthest = std::max(2 * model.context, 2 * dump.tokens);
  for (const std::int64_t p : dump.positions.front()) furthest = std::max(furthest, std::abs(p));
  const auto solved = Solver(dump, *plan.rotate, std::min(furthest, most)).run();
  if (!solved || *solved == dump.positions.front()) return std::nullopt;
  // Twice each position is twice each angle, which the frequencies tell.
  const auto twice = [](std::int64_t position) { return 2 * position; };
  if (dump.origin == 0 && std::ranges::equal(*solved, dump.positions.front(), {}, {}, twice))
    return std::nullopt;
  SolvedPositions out;
  // Of repeated tokens only the distances to the first are known: it stands where it is said to.
  for (const std::int64_t p : *solved) out.at.push_back(p + dump.origin);
  // None of a ring's keys is older than the text.
  const std::int64_t oldest = std::ranges::min(out.at);
  if (from.repeated && oldest < 0)
    for (std::int64_t& p : out.at) p -= oldest;
  // Beside the positions that were told.
  std::vector<std::int64_t> off;
  off.reserve(out.at.size());
  for (std::size_t t = 0; t < out.at.size(); ++t)
    off.push_back(out.at[t] - dump.positions.front()[t] - dump.origin);
  const bool shifted = std::ranges::all_of(off, [&](std::int64_t x) { return x == off.front(); });
  const std::vector<Run> runs =
      shifted ? std::vector<Run>{{0, off.front(), dump.tokens}} : runs_of(out.at);
  out.slip = slip(runs, dump.tokens);
  excuse_ring(*group, out.slip);
  if (!dump.zeros.empty()) {
    const std::int64_t zeros = std::ssize(dump.zeros);
    if (shifted && dump.zeros.back() == zeros - 1 && off.front() == -zeros)
      out.slip = padded_by_zeros(out.at, zeros);
    const bool counted = std::ranges::find(off, std::ssize(dump.zeros)) != off.end();
    if (counted && out.slip.code == "positions_gap")
      out.slip.message += "; it is as many as there are zeros, so that padding was counted";
    // One for each token again: those of zeros keep what was told of them.
    for (const std::int64_t t : dump.zeros)
      out.at.insert(out.at.begin() + t, from.positions.at(t, 0, 0));
  }
  out.slip.layers = group->layers;
  return out;
}

}  // namespace posenc
