#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/position_flags.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/positions.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct PositionsOptions {
  PositionFlags flags;
  std::string out;
  bool json = false;
};

std::vector<std::int64_t> row(const Positions& positions, std::int64_t axis, std::int64_t batch) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(positions.size()));
  for (std::int64_t t = 0; t < positions.size(); t++) out.push_back(positions.at(t, batch, axis));
  return out;
}

// {"positions":[axis][batch][seq]}, always three deep; segments of packed sequences, delta of
// vision.
void print_json(const MadePositions& made) {
  std::string text;
  for (std::int64_t axis = 0; axis < made.positions.axes(); axis++) {
    text += axis ? ",[" : "[";
    for (std::int64_t b = 0; b < made.positions.batch(); b++)
      text += fmt::format("{}[{}]", b ? "," : "", fmt::join(row(made.positions, axis, b), ","));
    text += "]";
  }
  write_out("{{\"positions\":[{}]", text);
  if (made.packed) {
    std::vector<std::int64_t> of;
    of.reserve(static_cast<std::size_t>(made.positions.size()));
    for (std::int64_t t = 0; t < made.positions.size(); t++)
      of.push_back(made.positions.segment(t));
    write_out(",\"segments\":[{}]", fmt::join(of, ","));
  }
  if (made.delta) write_out(",\"delta\":{}", *made.delta);
  write_out("}}\n");
}

void print_text(const MadePositions& made) {
  const Positions& positions = made.positions;
  constexpr const char* names[] = {"t", "h", "w"};
  for (std::int64_t axis = 0; axis < positions.axes(); axis++)
    for (std::int64_t b = 0; b < positions.batch(); b++)
      write_out("{}{}\n",
                positions.axes() == 1
                    ? ""
                    : std::string(names[positions.axes() == 2 ? axis + 1 : axis]) + "  ",
                fmt::join(row(positions, axis, b), " "));
  if (made.delta)
    write_out("the next token stands at (tokens so far) {} {}\n", *made.delta < 0 ? "-" : "+",
              std::abs(*made.delta));
}

// Shaped so that --positions reads it back: [seq], [axis][seq] or [axis][batch][seq].
Expected<void> write(const Positions& positions, const std::string& path) {
  std::vector<std::int64_t> shape{positions.size()};
  if (positions.batch() > 1) shape.insert(shape.begin(), positions.batch());
  if (positions.axes() > 1 || positions.batch() > 1) shape.insert(shape.begin(), positions.axes());
  POSENC_TRY(array, make_array(NpyType::i64, std::move(shape)));
  std::byte* to = array.data.data();
  for (std::int64_t axis = 0; axis < positions.axes(); axis++)
    for (std::int64_t b = 0; b < positions.batch(); b++)
      for (const std::int64_t id : row(positions, axis, b)) {
        std::memcpy(to, &id, sizeof id);
        to += sizeof id;
      }
  return write_array(path, array);
}

Run define_positions(CLI::App& app) {
  auto options = std::make_shared<PositionsOptions>();
  app.add_option(
         "OUT", options->out,
         "Write int64 ids there, .npy, .safetensors, .csv or .txt, instead of printing them")
      ->check(array_file());
  options->flags.add_to(app);
  app.add_flag("--json", options->json)->description("{\"positions\":[axis][batch][seq],...}");
  app.footer(
      "Rules: qwen2_vl, qwen2_5_vl, qwen3_vl, ernie4_5_vl, qwen2_5_omni, qwen3_omni; qwen2_vl_2025 "
      "is "
      "that\n"
      "of Qwen2-VL until 2025: after a video longer than it is wide the text goes on past the last "
      "frame.\n\n"
      "Examples:\n"
      "  posenc positions --mask '0,0,1,1;1,1,1,1'\n"
      "  posenc positions --packed 0,3,8 --json\n"
      "  posenc positions ids.npy --ids tokens.npy --image_grid 1x4x6 --rule qwen2_5_vl\n"
      "  posenc positions --ids tokens.npy --video_grid 8x16x28 --rule qwen2_5_omni "
      "--audio_token_id 151646\n"
      "  posenc positions --grid 4x6 --merge 2");
  return [options]() -> Expected<int> {
    POSENC_TRY(made, made_positions(options->flags, "positions"));
    if (!options->out.empty()) {
      POSENC_CHECK(write(made.positions, options->out));
    }
    if (options->json) {
      print_json(made);
    } else if (options->out.empty()) {
      print_text(made);
    }
    return 0;
  };
}

}  // namespace

extern const Command positions_command{
    "positions", "position ids from masks, packed sequences, images and videos", define_positions};

}  // namespace posenc::cli
