// Convolutions whose channels stand alone: a token is a sum, over its taps, of a row of weights
// times the row of the token that the tap reads. Tokens are read where they lie, if they lie there
// as numbers that are computed with; else a few rows of the grid are held as such.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "src/content/convolved_rows.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"
#include "src/kernels/taps.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

// A tensor's rows can be read, or written, in whole vectors of such elements.
template <class Element>
bool lies_as(const Tensor& x) {
  const bool same =
      with_element(x.dtype, []<class Own>(Own*) { return std::is_same_v<Own, Element>; });
  return same && x.stride[3] == 1 && x.shape[3] % row_lanes == 0;
}

// The patches of sequences, row after row of the grid.
template <class Element>
class Patches {
 public:
  // The last `held` that were asked for are there. 16 bits must lie as such.
  Patches(const ConvolutionJob& job, std::int64_t held, Scratch& scratch)
      : job_(job),
        lie_(lies_as<Element>(job.x)),
        held_(held),
        // Of an odd number of cache lines, so that neighbours do not all meet in a few sets of a
        // cache.
        step_(job.step() + row_lanes),
        copies_(lie_ ? nullptr : scratch.take<Element>(held * step_)) {}

  // Patches [begin, end) of sequence b, `held` at most, can be had from now on.
  void reach(std::int64_t b, std::int64_t begin, std::int64_t end) {
    if (b != b_ || begin > end_ || begin < begin_) begin_ = end_ = begin;
    b_ = b;
    if constexpr (std::is_same_v<Element, Compute<Element>>)
      for (; !lie_ && end_ < end;) {
        const std::int64_t at = end_ % held_, count = std::min(end - end_, held_ - at);
        load_rows(job_.x, place(end_), count, copies_ + at * step_, step_);
        end_ += count;
      }
    begin_ = std::max(begin_, end_ - held_);
  }
  const Element* operator[](std::int64_t patch) const {
    return lie_ ? static_cast<const Element*>(job_.x.data) + place(patch)
                : copies_ + patch % held_ * step_;
  }

 private:
  std::int64_t place(std::int64_t patch) const { return job_.x.offset(b_, 0, job_.kept + patch); }

  const ConvolutionJob& job_;
  bool lie_;
  std::int64_t held_, step_;
  Element* copies_;
  std::int64_t b_ = -1, begin_ = 0, end_ = 0;  // what is there
};

// Where sums of tokens go, `step` numbers from one to the next.
template <class Element>
struct TokenSums {
  Element* numbers;
  std::int64_t step;
};

// For sums that are left where they were made.
struct LeftThere {
  void operator()(auto&&...) const {}
};

// Sums b + Σ w x of all patches, a few at a time: they go to room(b, patch, ours, step), which may
// be those rows of ours, and are then handed to done(b, patch, count, made, own), whose own(i) are
// x's numbers. Sums that are left there are made a thousand channels of a row at a time, so that
// weights and neighbours stay in the first caches. `flipped`: weights that go back, by
// packed_weights of that name.
template <class Element, class MakeRoom, class Done>
void convolve_alone(const ConvolutionJob& job, bool flipped,
                    const std::vector<Compute<Element>>& weights,
                    const std::vector<Compute<Element>>& bias, const MakeRoom& room,
                    const Done& done) {
  constexpr bool are_left = std::is_same_v<Done, LeftThere>;
  constexpr std::int64_t channels_at_once = 1024;
  const std::int64_t step = job.step(), channels = are_left ? channels_at_once : step;
  const std::int64_t up = flipped ? job.tall - 1 - job.up() : job.up(),
                     left = flipped ? job.wide - 1 - job.left() : job.left();
  // A piece is a row of the grid, or some of the one that there is.
  const bool line = job.rows == 1;
  const std::int64_t piece = line ? std::min<std::int64_t>(job.columns, 64) : job.columns,
                     across = (job.columns + piece - 1) / piece, pieces = job.rows * across,
                     held = line ? std::min(job.columns, piece + job.wide - 1)
                                 : std::min(job.rows, job.tall) * job.columns,
                     seen = piece + job.wide - 1;
  const std::vector<Element> zeros(static_cast<std::size_t>(step));
  share_out(job.batch * pieces, job.threads, [&](std::int64_t begin, std::int64_t end) {
    Scratch scratch;
    Patches<Element> patches(job, held, scratch);
    Element* const ours = scratch.take<Element>(tile_tokens * step);
    std::vector<const Element*> places(static_cast<std::size_t>(job.tall * seen));
    // A tile reads some lines of each of many pages, which not every processor foresees.
    const std::int64_t piece_bytes = piece * step * static_cast<std::int64_t>(sizeof(Element));
    Ahead ahead(Loop::convolution, are_left ? (end - begin) * piece_bytes : 0);
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t b = at / pieces, y = at % pieces / across, first = at % across * piece,
                         last = std::min(first + piece, job.columns),
                         top = std::max<std::int64_t>(y - up, 0),
                         bottom = std::min(y - up + job.tall, job.rows);
      patches.reach(
          b, top * job.columns + (line ? std::max<std::int64_t>(first - left, 0) : 0),
          line ? std::min(last - left + job.wide - 1, job.columns) : bottom * job.columns);
      const auto numbers = [&](std::int64_t row, std::int64_t column) {
        const std::int64_t patch = row * job.columns + column;
        const bool there = row >= 0 && row < job.rows && column >= 0 && column < job.columns &&
                           !job.hides(b, job.kept + patch);
        return there ? patches[patch] : zeros.data();
      };
      for (std::int64_t row = 0; row < job.tall; ++row)
        for (std::int64_t column = 0; column < last - first + job.wide - 1; ++column)
          places[static_cast<std::size_t>(row * seen + column)] =
              numbers(y - up + row, first - left + column);
      const Ask ask = ahead(piece_bytes);
      for (std::int64_t channel = 0; channel < step; channel += channels) {
        const Taps<Compute<Element>> taps{weights.data(),
                                          bias.data(),
                                          job.tall,
                                          job.wide,
                                          step,
                                          channel,
                                          std::min(channel + channels, step)};
        for (std::int64_t x = first; x < last; x += tile_tokens) {
          const auto count = static_cast<int>(std::min<std::int64_t>(last - x, tile_tokens));
          const std::int64_t patch = y * job.columns + x;
          const TokenSums<Element> to = room(b, patch, ours, step);
          const Element* const* const from = places.data() + (x - first);
          const bool goes_on = are_left && x + 2 * tile_tokens <= last;
          const Element* const* const next =
              goes_on ? from + (job.tall - 1) * seen + tile_tokens + job.wide - 1 : nullptr;
          sum_taps(taps, TokenPlaces<Element>{from, seen, next, ask}, count, to.numbers, to.step);
          done(b, patch, count, to, [&](std::int64_t i) { return numbers(y, x + i); });
        }
      }
    }
  });
}

}  // namespace posenc::detail
