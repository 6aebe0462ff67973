// Position vectors and sums: plans brought to a device, calls checked and put into the kernel's
// terms.
#include <cstdint>
#include <variant>
#include <vector>

#include "backends/cuda/calls.h"
#include "posenc/features.h"

namespace posenc::cuda {

Expected<Additions> Additions::make(const Plan& plan, const Backend& backend) {
  if (!plan.add)
    return fail(where, "a plan must add something", "none", "posenc explain shows what it does");
  POSENC_CHECK(check_device(backend));
  POSENC_CHECK(check_takes(rooms::add, plan, where));
  Additions made;
  made.backend_ = &backend;
  made.part_ = *plan.add;
  if (const auto* waves = std::get_if<Waves>(&plan.add->kind)) {
    if (waves->axes != 1 || !waves->blocks.empty() || waves->cosine_first || waves->amplitude != 1)
      return fail(where, "waves must be of one axis, sines first, of amplitude 1",
                  std::to_string(waves->axes) + (waves->axes == 1 ? " axis" : " axes"),
                  "add them on the host");
    std::vector<Turns> turns;
    for (const double f : waves->frequency) {
      if (!(f < 0x1p200 && f > -0x1p200))
        return fail(where, "a frequency must be below 2^200", number_text(f));
      turns.push_back(posenc::turns_of(f));
    }
    POSENC_CHECK(bring(made.numbers_, backend, turns));
  }
  if (const auto* rows = std::get_if<Rows>(&plan.add->kind)) {
    if (rows->axes() != 1)
      return fail(where, "learned rows must be of one axis", std::to_string(rows->axes()) + " axes",
                  "add a table for each axis, one after the other");
    const Tensor values = rows->table.values.with_rank(2);
    if (!rows->table || values.shape[0] != rows->rows || values.shape[1] != rows->width)
      return fail(where, "the learned table must be given", shape_text(rows->table.values),
                  "set add.table in the plan");
    made.table_type_ = values.dtype;
    std::vector<std::byte> bytes(static_cast<std::size_t>(values.size()) * size_of(values.dtype));
    const Tensor dense = Tensor::dense(bytes.data(), values.dtype, {rows->rows, rows->width});
    for (std::int64_t row = 0; row < rows->rows; ++row)
      for (std::int64_t c = 0; c < rows->width; ++c)
        dense.set(dense.offset(row, c), values.get(values.offset(row, c)));
    POSENC_CHECK(bring(made.numbers_, backend, bytes));
  }
  return made;
}

// A call as the kernel has it.
class AddOnDevice {
 public:
  explicit AddOnDevice(const Additions& additions) : additions_(additions) {}

  // x: absent, or of out's shape.
  Expected<void> run(const Tensor& x, const DevicePositions& positions, const Tensor& out,
                     void* stream) {
    if (additions_.backend_ == nullptr) return fail(where, "additions must have been made", "none");
    const Tensor to = out.with_rank(3), from = x.with_rank(3);
    if (!out || out.rank > 3 ||
        (x && (x.rank > 3 || from.shape != to.shape || x.dtype != out.dtype)))
      return fail(where, "out must be [batch, seq, width], of its input's shape and type",
                  shape_text(out));
    if (positions.real_ids != nullptr)
      return fail(where, "positions of what is added must be whole", "real ids");
    if (to.shape[0] > 0 && to.shape[1] > INT32_MAX / to.shape[0])
      return fail(where, "a call may have 2^31 tokens", shape_text(out), "add them in parts");
    POSENC_TRY(tokens, tokens_of(positions, to.shape[0], to.shape[1]));
    call_.tokens = tokens;
    call_.number = static_cast<Number>(out.dtype);
    call_.out = to.data;
    call_.out_batch = to.stride[0];
    call_.out_token = to.stride[1];
    call_.out_channel = to.stride[2];
    if (x) {
      call_.in = from.data;
      call_.in_batch = from.stride[0];
      call_.in_token = from.stride[1];
      call_.in_channel = from.stride[2];
      call_.scale = additions_.part_.embedding_scale;
    }
    std::visit([this](const auto& kind) { set(kind); }, additions_.part_.kind);
    if (to.shape[2] != call_.width)
      return fail(where, "the width must be that of the plan, " + std::to_string(call_.width),
                  std::to_string(to.shape[2]));
    call_.wide = in_words(to) && (!x || in_words(from)) && units_are_words(out.dtype);
    if (to.size() == 0) return {};
    return done(additions_.backend_->sum(call_, stream));
  }

 private:
  void set(const Waves& waves) {
    call_.added = Added::waves;
    call_.width = static_cast<std::int32_t>(waves.width);
    call_.pairs = static_cast<std::int32_t>(waves.frequency.size());
    call_.interleaved = waves.layout == WaveLayout::interleaved;
    call_.row_offset = waves.row_offset;
    call_.zero_row = waves.zero_row;
    call_.turns = static_cast<const Turns*>(additions_.numbers_.get());
  }
  void set(const Rows& rows) {
    call_.added = Added::rows;
    call_.width = static_cast<std::int32_t>(rows.width);
    call_.row_offset = rows.row_offset;
    call_.table = additions_.numbers_.get();
    call_.table_number = static_cast<Number>(additions_.table_type_);
    call_.table_rows = rows.rows;
  }
  void set(const Ramp& ramp) {
    call_.added = Added::ramp;
    call_.width = static_cast<std::int32_t>(ramp.width);
    call_.channel = static_cast<std::int32_t>(ramp.channel);
    call_.ramp = ramp.scale;
  }

  // Of waves that lie apart, both words of a pair's must be whole.
  bool units_are_words(DType dtype) const {
    const auto n = 16 / static_cast<std::int32_t>(size_of(dtype));
    if (call_.added != Added::waves) return call_.width % n == 0;
    return call_.width == 2 * call_.pairs &&
           (call_.interleaved ? call_.width : call_.pairs) % n == 0;
  }

  const Additions& additions_;
  SumCall call_ = {};
};

Expected<void> add(const Additions& additions, const Tensor& embedding,
                   const DevicePositions& positions, const Tensor& out, void* stream) {
  if (!embedding) return fail(where, "an embedding must be given", "none");
  return AddOnDevice(additions).run(embedding, positions, out, stream);
}

Expected<void> position_vectors(const Additions& additions, const DevicePositions& positions,
                                const Tensor& out, void* stream) {
  return AddOnDevice(additions).run({}, positions, out, stream);
}

}  // namespace posenc::cuda
