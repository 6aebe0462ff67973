// posenc attend --mpi: each rank reads its tokens' rows of the files, and writes its rows of the
// output.
#include "cli/mpi/program/on_ranks.h"

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "posenc/distributed.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Rows [batch, heads, tokens, width] with memory of their own.
struct OwnRows {
  std::vector<std::byte> bytes;
  Tensor view;
};

std::byte* row_of(const Tensor& x, std::int64_t b, std::int64_t h, std::int64_t t) {
  return static_cast<std::byte*>(x.data) +
         x.offset(b, h, t) * static_cast<std::int64_t>(size_of(x.dtype));
}

OwnRows rows_like(const Tensor& x, std::int64_t tokens, std::int64_t width) {
  OwnRows rows{
      .bytes = std::vector<std::byte>(
          static_cast<std::size_t>(x.shape[0] * x.shape[1] * tokens * width) * size_of(x.dtype) +
          1)};
  rows.view = Tensor::dense(rows.bytes.data(), x.dtype, {x.shape[0], x.shape[1], tokens, width});
  return rows;
}

// Calls act(b, h, index, row bytes) for a rank's tokens.
OwnRows tokens_of(const Tensor& whole, const std::vector<std::int64_t>& tokens) {
  OwnRows own = rows_like(whole, std::ssize(tokens), whole.shape[3]);
  const std::int64_t bytes = whole.shape[3] * static_cast<std::int64_t>(size_of(whole.dtype));
  for (std::int64_t b = 0; b < whole.shape[0]; ++b)
    for (std::int64_t h = 0; h < whole.shape[1]; ++h)
      for (std::int64_t t = 0; t < std::ssize(tokens); ++t)
        std::copy_n(row_of(whole, b, h, tokens[static_cast<std::size_t>(t)]), bytes,
                    row_of(own.view, b, h, t));
  return own;
}

// [batch][token] of the whole text.
template <class Number>
std::vector<Number> numbers_of(const Number* whole, std::int64_t batch, std::int64_t count,
                               const std::vector<std::int64_t>& tokens) {
  std::vector<Number> own(1);
  own.clear();
  for (std::int64_t b = 0; b < batch && whole != nullptr; ++b)
    for (const std::int64_t token : tokens) own.push_back(whole[b * count + token]);
  return own;
}

// [batch][heads][token] as rows of one number.
Tensor rows_of_one(Tensor x) {
  x.rank = 4;
  x.shape[3] = x.stride[3] = 1;
  return x;
}

// One file that all ranks write their rows to: made beside its name by rank 0, and renamed when
// whole.
class SharedFile {
 public:
  SharedFile(std::string path, const std::string& header)
      : path_(std::move(path)), temporary_(path_ + ".posenc-mpi"), header_(header) {}
  ~SharedFile() {
    if (file_ >= 0) close(file_);
  }

  Expected<void> create() {
    file_ = open(temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    return write(0, header_.data(), std::ssize(header_));
  }
  Expected<void> join() {
    if (file_ < 0) file_ = open(temporary_.c_str(), O_WRONLY);
    return file_ >= 0 ? Expected<void>() : failed();
  }
  Expected<void> write_rows(const Tensor& own, const std::vector<std::int64_t>& tokens,
                            std::int64_t all) {
    const std::int64_t bytes = own.shape[3] * static_cast<std::int64_t>(size_of(own.dtype));
    for (std::int64_t b = 0; b < own.shape[0]; ++b)
      for (std::int64_t h = 0; h < own.shape[1]; ++h)
        for (std::int64_t t = 0; t < std::ssize(tokens); ++t)
          POSENC_CHECK(write(
              std::ssize(header_) +
                  ((b * own.shape[1] + h) * all + tokens[static_cast<std::size_t>(t)]) * bytes,
              row_of(own, b, h, t), bytes));
    return {};
  }
  Expected<void> finish() {
    return std::rename(temporary_.c_str(), path_.c_str()) == 0 ? Expected<void>() : failed();
  }

 private:
  Expected<void> write(std::int64_t at, const void* bytes, std::int64_t count) {
    return file_ >= 0 && pwrite(file_, bytes, static_cast<std::size_t>(count), at) == count
               ? Expected<void>()
               : failed();
  }
  Expected<void> failed() const {
    return fail(path_, "the ranks must be able to write it", temporary_,
                "all of them must see its folder");
  }

  std::string path_, temporary_;
  const std::string& header_;
  int file_ = -1;
};

Expected<Layout> layout_of(const DistributedCall& call, int ranks) {
  const Positions& whole = call.in.queries;
  std::vector<std::int64_t> bounds = {0};
  for (std::int64_t t = 1; t < whole.size(); ++t)
    if (whole.segment(t) != whole.segment(t - 1)) bounds.push_back(t);
  bounds.push_back(whole.size());
  return Layout::named(call.layout, bounds, ranks, call.in.mask, call.block);
}

}  // namespace

Expected<void> attend_on_ranks(const DistributedCall& call) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const AttentionInputs& in = call.in;
  const std::int64_t batch = in.q.shape[0], all = in.q.shape[2];
  POSENC_TRY(layout, layout_of(call, size));
  constexpr Strategy strategies[] = {Strategy::gather, Strategy::ring, Strategy::heads};
  const auto* const strategy =
      std::ranges::find(strategies, call.strategy, [](Strategy each) { return name(each); });
  if (strategy == std::end(strategies))
    return fail("--strategy", "must be ring, gather or heads", call.strategy);
  POSENC_TRY(text, DistributedText::make(MPI_COMM_WORLD, layout, in.queries, *strategy));
  const std::vector<std::int64_t> tokens = layout.tokens_of(rank);
  const OwnRows q = tokens_of(in.q, tokens), k = tokens_of(in.k, tokens),
                v = tokens_of(in.v, tokens),
                out = rows_like(in.q, std::ssize(tokens), in.v.shape[3]);
  const auto keep = numbers_of(in.mask.keep, batch, all, tokens);
  const auto blocks = numbers_of(in.mask.blocks, batch, all, tokens);
  AttentionInputs own{
      .q = q.view, .k = k.view, .v = v.view, .mask = in.mask, .threads = in.threads};
  if (in.mask.keep != nullptr) own.mask.keep = keep.data();
  if (in.mask.blocks != nullptr) own.mask.blocks = blocks.data();
  OwnRows sinks;
  own.sink_logits = in.sink_logits;
  if (in.sink_logits.rank == 3) {
    sinks = tokens_of(rows_of_one(in.sink_logits), tokens);
    own.sink_logits = sinks.view;
    own.sink_logits.rank = 3;
  }
  if (call.content == nullptr) {
    POSENC_CHECK(text.attend(own, call.plan, out.view));
  } else {
    ContentScheme scheme = *call.content;
    std::vector<OwnRows> tables;
    for (const TableInfo& table : info(scheme).tables) {
      const Table& whole = *table_of(scheme, table.name);
      const auto axes = static_cast<int>(table.holds.axes.count);
      if (!whole || !table.holds.axes.of_tokens() || whole.values.rank > axes) continue;
      const Tensor rows = whole.values.with_rank(axes);
      if (rows.shape[2] != all) continue;  // which the call refuses
      tables.push_back(tokens_of(axes == 3 ? rows_of_one(rows) : rows, tokens));
      tables.back().view.rank = axes;
      POSENC_CHECK(set_table(scheme, table.name, Table::borrow(tables.back().view)));
    }
    POSENC_CHECK(text.attend(own, scheme, call.plan, out.view));
  }
  SharedFile file(call.out, call.header);
  POSENC_CHECK(agree_on_errors(MPI_COMM_WORLD, rank == 0 ? file.create() : Expected<void>()));
  POSENC_CHECK(agree_on_errors(MPI_COMM_WORLD, file.join()));
  POSENC_CHECK(agree_on_errors(MPI_COMM_WORLD, file.write_rows(out.view, tokens, all)));
  return agree_on_errors(MPI_COMM_WORLD, rank == 0 ? file.finish() : Expected<void>());
}

}  // namespace posenc::cli
