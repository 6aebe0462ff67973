// What is asked of MPI: errors as values that all ranks share, and messages of tensors that may be
// large.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc::mpi {

// Messages are counted in units of so many bytes, since MPI 3 counts in int.
constexpr std::int64_t unit = 64;
constexpr std::int64_t units(std::int64_t bytes) { return (bytes + unit - 1) / unit; }

// Memory of whole units.
using Bytes = std::vector<std::byte>;
inline Bytes bytes_for(std::int64_t bytes) {
  return Bytes(static_cast<std::size_t>(units(bytes) * unit));
}

// A number that differs where what was added differs, but for chance.
class Fingerprint {
 public:
  template <class... Numbers>
  Fingerprint& add(Numbers... numbers) {
    ((sum_ = (sum_ ^ static_cast<std::uint64_t>(numbers)) * 0x9E3779B97F4A7C15u,
      sum_ ^= sum_ >> 29),
     ...);
    return *this;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0x243F6A8885A308D3u;
};

// A duplicate of the caller's communicator, which returns errors.
class Communicator {
 public:
  static Expected<Communicator> duplicate(MPI_Comm of);
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::int64_t sent() const { return sent_; }  // bytes so far
  std::int64_t received() const { return received_; }
  double waited() const { return waited_; }  // seconds so far

  // Collective: the same on all ranks. Errors: that of the first rank that has one; fingerprints
  // that differ.
  Expected<void> agree(const Expected<void>& own, const Fingerprint& fingerprint = {}) const;

  // Whole units, sent in the background until wait(). What goes to and fro between two ranks at a
  // time has a kind each.
  enum class Kind { block, gradient };
  Expected<void> send(const Bytes& bytes, int to, Kind kind = Kind::block);
  Expected<void> receive(Bytes& bytes, int from, Kind kind = Kind::block);
  // Part r of `out` goes to rank r, part r of the result came from there; sizes are known to both.
  Expected<void> exchange(std::span<const Bytes> out, std::span<Bytes> in);
  void progress();        // so that what was sent arrives while the caller computes
  Expected<void> wait();  // for all of them

  // Over all ranks, in place.
  Expected<void> sum(std::span<double> numbers) const { return reduce(numbers, MPI_SUM); }
  Expected<void> largest(std::span<double> numbers) const { return reduce(numbers, MPI_MAX); }

 private:
  Communicator() = default;
  Expected<void> reduce(std::span<double> numbers, MPI_Op how) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
  int rank_ = 0, size_ = 1;
  std::int64_t sent_ = 0, received_ = 0;
  double waited_ = 0;
  std::vector<MPI_Request> under_way_;
};

}  // namespace posenc::mpi
