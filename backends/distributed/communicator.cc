#include "backends/distributed/communicator.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "src/core/try.h"

namespace posenc::mpi {
namespace {

Expected<void> checked_call(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(call, "MPI must succeed", std::string_view(text, static_cast<std::size_t>(length)),
              "a rank may have died; see its output");
}

// Until all are done; meanwhile others may have the core. MPICH would keep it, and more ranks than
// cores wait for each other's time slices.
int finish(std::span<MPI_Request> requests) {
  const int count = static_cast<int>(requests.size());
#ifdef POSENC_SIMULATED  // there each question takes time of its own
  return MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
#endif
  for (int done = 0;;) {
    const int code = MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0 || code != MPI_SUCCESS) return code;
    std::this_thread::yield();
  }
}

// A collective by its immediate form: start(request).
template <class Start>
Expected<void> collective(std::string_view call, const Start& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  POSENC_CHECK(checked_call(start(&request), call));
  return checked_call(finish({&request, 1}), call);
}

}  // namespace

Expected<Communicator> Communicator::duplicate(MPI_Comm of) {
  int ready = 0;
  MPI_Initialized(&ready);
  if (ready == 0) return fail("posenc_mpi", "MPI_Init must have been called", "no MPI", "call it");
  Communicator mine;
  POSENC_CHECK(checked_call(MPI_Comm_dup(of, &mine.comm_), "MPI_Comm_dup"));
  MPI_Comm_set_errhandler(mine.comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(mine.comm_, &mine.rank_);
  MPI_Comm_size(mine.comm_, &mine.size_);
  MPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &mine.unit_);
  MPI_Type_commit(&mine.unit_);
  return mine;
}

Communicator::Communicator(Communicator&& other) noexcept { *this = std::move(other); }

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(unit_, other.unit_);
  std::swap(rank_, other.rank_);
  std::swap(size_, other.size_);
  std::swap(sent_, other.sent_);
  std::swap(received_, other.received_);
  std::swap(waited_, other.waited_);
  std::swap(under_way_, other.under_way_);
  return *this;
}

Communicator::~Communicator() {
  int over = 0;
  MPI_Finalized(&over);
  if (over != 0 || comm_ == MPI_COMM_NULL) return;
  MPI_Type_free(&unit_);
  MPI_Comm_free(&comm_);
}

Expected<void> Communicator::agree(const Expected<void>& own,
                                   const Fingerprint& fingerprint) const {
  // The first rank with an error, as a largest number; and a fingerprint's largest and smallest.
  const std::uint64_t mine[] = {own ? 0 : static_cast<std::uint64_t>(size_ - rank_),
                                fingerprint.sum(), ~fingerprint.sum()};
  std::uint64_t all[3];
  POSENC_CHECK(collective("MPI_Iallreduce", [&](MPI_Request* request) {
    return MPI_Iallreduce(mine, all, 3, MPI_UINT64_T, MPI_MAX, comm_, request);
  }));
  if (all[0] == 0) {
    if (all[1] == ~all[2]) return {};
    return fail("posenc_mpi", "all ranks must give the same layout, plan, mask, shapes and dtype",
                "ranks that differ", "tokens alone may differ from rank to rank");
  }
  const int first = size_ - static_cast<int>(all[0]);
  const auto told = [&](std::string text) -> Expected<std::string> {
    int length = static_cast<int>(text.size());
    POSENC_CHECK(checked_call(MPI_Bcast(&length, 1, MPI_INT, first, comm_), "MPI_Bcast"));
    text.resize(static_cast<std::size_t>(length));
    POSENC_CHECK(checked_call(MPI_Bcast(text.data(), length, MPI_CHAR, first, comm_), "MPI_Bcast"));
    return text;
  };
  const Error none, &error = own ? none : own.error();
  POSENC_TRY(where, told(error.where));
  POSENC_TRY(rule, told(error.rule));
  POSENC_TRY(got, told(error.got));
  POSENC_TRY(cure, told(error.cure));
  return fail("rank " + std::to_string(first) + ": " + where, rule, got, cure);
}

Expected<void> Communicator::send(const Bytes& bytes, int to, Kind kind) {
  sent_ += std::ssize(bytes);
  return checked_call(MPI_Isend(bytes.data(), static_cast<int>(bytes.size() / unit), unit_, to,
                                static_cast<int>(kind), comm_, &under_way_.emplace_back()),
                      "MPI_Isend");
}

Expected<void> Communicator::receive(Bytes& bytes, int from, Kind kind) {
  received_ += std::ssize(bytes);
  return checked_call(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size() / unit), unit_, from,
                                static_cast<int>(kind), comm_, &under_way_.emplace_back()),
                      "MPI_Irecv");
}

Expected<void> Communicator::exchange(std::span<const Bytes> out, std::span<Bytes> in) {
  const auto me = static_cast<std::size_t>(rank_);
  std::ranges::copy(out[me], in[me].begin());
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_, from = (rank_ - step + size_) % size_;
    POSENC_CHECK(receive(in[static_cast<std::size_t>(from)], from));
    POSENC_CHECK(send(out[static_cast<std::size_t>(to)], to));
  }
  return wait();
}

void Communicator::progress() {
  int done = 0;
  MPI_Testall(static_cast<int>(under_way_.size()), under_way_.data(), &done, MPI_STATUSES_IGNORE);
}

Expected<void> Communicator::wait() {
  const double start = MPI_Wtime();
  const int code = finish(under_way_);
  waited_ += MPI_Wtime() - start;
  under_way_.clear();
  return checked_call(code, "MPI_Testall");
}

Expected<void> Communicator::reduce(std::span<double> numbers, MPI_Op how) const {
  constexpr std::size_t most = std::size_t{1} << 24;
  for (; !numbers.empty(); numbers = numbers.subspan(std::min(most, numbers.size())))
    POSENC_CHECK(collective("MPI_Iallreduce", [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, numbers.data(),
                            static_cast<int>(std::min(most, numbers.size())), MPI_DOUBLE, how,
                            comm_, request);
    }));
  return {};
}

}  // namespace posenc::mpi
