// Whether a loop over memory asks for it ahead of its use (prefetch), and for which cache. An Intel
// Xeon that is not asked leaves a third of its memory's speed unused. An AMD EPYC finds out by
// itself in plain loops, which asking for the first cache slows by a quarter; its sums with waves,
// which compute much, gain a sixth. So it is measured, in turns on the caller's own memory, during
// the first calls that are large enough; afterwards the fastest way stays. No number that is
// computed depends on it.
#pragma once

#include <cstdint>

namespace posenc::detail {

// Loops that choose each for itself. Scaling is the limit that the benchmark measures rotations and
// sums against.
enum class Loop { rotation, sum, scaling, convolution };

// Not at all, or for the first or the second cache.
enum class Ask { no, first, second };

class Ahead {
 public:
  // How far ahead, where it is asked for.
  static constexpr std::int64_t distance = 4096;
  // What is smaller than this is not asked for: the second cache holds it, or nearly.
  static constexpr std::int64_t least_bytes = 4 << 20;

  // For a loop through so many bytes, on the calling thread.
  Ahead(Loop loop, std::int64_t bytes);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // How to ask for the next part of so many bytes.
  Ask operator()(std::int64_t bytes) { return trying_ ? tried(bytes) : ask_; }

 private:
  Ask tried(std::int64_t bytes);

  const Loop loop_;
  bool trying_ = false;
  Ask ask_ = Ask::no;
  std::int64_t bytes_ = 0;  // of the part that is being timed
  double start_ = 0;
};

// What was chosen in this process.
struct AheadChoice {
  bool known = false;  // no call was large enough yet: then it is asked for
  Ask ask = Ask::first;
  double gain = 1;  // the time without asking, or else of the better way to ask, over this one's
};
AheadChoice chosen_ahead(Loop loop);

}  // namespace posenc::detail
