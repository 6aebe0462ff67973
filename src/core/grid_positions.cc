// Patches of a picture on one axis, and the windows of Swin.
#include <algorithm>
#include <string>

#include "posenc/positions.h"
#include "src/core/saturating.h"

namespace posenc {
namespace {

constexpr std::int64_t most_patches = std::int64_t{1} << 28;

Expected<void> check_grid(std::string_view where, std::int64_t height, std::int64_t width) {
  if (height >= 1 && width >= 1 && detail::product(height, width) <= most_patches) return {};
  return fail(where, "a grid must have 1 to 2^28 patches",
              std::to_string(height) + " x " + std::to_string(width), "check the sizes");
}

}  // namespace

Expected<GridPositions> grid_positions(std::int64_t height, std::int64_t width, bool class_token) {
  if (auto ok = check_grid("grid_positions", height, width); !ok)
    return std::unexpected(ok.error());
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(height * width + 1));
  // Distances of patches are within ±last; those of the class token as a query lie above, as a key
  // above these.
  const std::int64_t last = (height - 1) * (2 * width - 1) + width - 1;
  if (class_token) ids.push_back(2 * last + 1);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) ids.push_back(y * (2 * width - 1) + x);
  auto queries = Positions::signed_ids(ids);
  if (!queries) return std::unexpected(queries.error());
  if (class_token) ids.front() = -(3 * last + 2);
  auto keys = Positions::signed_ids(ids);
  if (!keys) return std::unexpected(keys.error());
  return GridPositions{*std::move(queries), *std::move(keys)};
}

Expected<WindowPartition> window_partition(std::int64_t height, std::int64_t width,
                                           std::int64_t window, std::int64_t shift) {
  constexpr std::string_view where = "window_partition";
  if (auto ok = check_grid(where, height, width); !ok) return std::unexpected(ok.error());
  if (window < 1 || height % window != 0 || width % window != 0) {
    return fail(where, "the grid must be a whole number of windows",
                std::to_string(height) + " x " + std::to_string(width) + " in windows of " +
                    std::to_string(window),
                "pad the picture");
  }
  if (shift < 0 || shift >= window)
    return fail(where, "shift must lie within 0 and the window less 1", std::to_string(shift),
                "shift by half of a window");
  WindowPartition partition;
  std::vector<std::int64_t> ids, ends = {0};
  const std::int64_t rest = window - shift;
  const auto part = [&](std::int64_t top, std::int64_t left, std::int64_t first_y,
                        std::int64_t end_y, std::int64_t first_x, std::int64_t end_x) {
    for (std::int64_t y = first_y; y < end_y; ++y) {
      for (std::int64_t x = first_x; x < end_x; ++x) {
        ids.push_back(y * (2 * window - 1) + x);
        partition.order.push_back((top + y + shift) % height * width + (left + x + shift) % width);
      }
    }
    if (std::ssize(ids) > ends.back()) ends.push_back(std::ssize(ids));
  };
  for (std::int64_t top = 0; top < height; top += window) {
    for (std::int64_t left = 0; left < width; left += window) {
      // Of the last windows the patches that came around are parts of their own.
      const std::int64_t cut_y = top + window == height ? rest : window;
      const std::int64_t cut_x = left + window == width ? rest : window;
      part(top, left, 0, cut_y, 0, cut_x);
      part(top, left, 0, cut_y, cut_x, window);
      part(top, left, cut_y, window, 0, cut_x);
      part(top, left, cut_y, window, cut_x, window);
    }
  }
  auto positions = Positions::packed(ends, ids);
  if (!positions) return std::unexpected(positions.error());
  partition.positions = *std::move(positions);
  return partition;
}

Expected<Neighbourhood> neighbourhood(std::int64_t height, std::int64_t width, std::int64_t kernel,
                                      std::int64_t dilation) {
  constexpr std::string_view where = "neighbourhood";
  if (auto ok = check_grid(where, height, width); !ok) return std::unexpected(ok.error());
  if (kernel < 1 || kernel % 2 == 0)
    return fail(where, "kernel must be odd, so that a patch is its middle", std::to_string(kernel),
                "give 3, 5, 7, …");
  const std::int64_t across = detail::product(kernel, dilation);
  if (dilation < 1)
    return fail(where, "dilation must be 1 or more", std::to_string(dilation),
                "1 is a neighbourhood without gaps");
  if (across > std::min(height, width))
    return fail(where, "a grid must have kernel · dilation rows and columns",
                std::to_string(height) + " x " + std::to_string(width) + " for " +
                    std::to_string(kernel) + " · " + std::to_string(dilation),
                "pad the picture");
  const std::int64_t count = kernel * kernel;
  if (detail::product(height * width, count) > most_patches)
    return fail(where, "there must be at most 2^28 keys in all",
                std::to_string(height * width) + " · " + std::to_string(count),
                "give a smaller picture");
  // The first of the patches that one at `i` sees, of those which are `dilation` apart from it.
  const auto first = [&](std::int64_t i, std::int64_t side) {
    const std::int64_t place = i / dilation, offset = i % dilation,
                       places = (side - offset - 1) / dilation + 1;
    return std::clamp<std::int64_t>(place - kernel / 2, 0, places - kernel) * dilation + offset;
  };
  Neighbourhood made{.positions = {}, .key_count = count};
  made.keys.reserve(static_cast<std::size_t>(height * width * count));
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(height * width));
  const std::int64_t row = 2 * ((width - 1) / dilation + 1) - 1;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      ids.push_back(y / dilation * row + x / dilation);
      const std::int64_t top = first(y, height), left = first(x, width);
      for (std::int64_t i = 0; i < kernel; ++i)
        for (std::int64_t j = 0; j < kernel; ++j)
          made.keys.push_back(
              static_cast<std::int32_t>((top + i * dilation) * width + left + j * dilation));
    }
  }
  auto positions = Positions::signed_ids(ids);
  if (!positions) return std::unexpected(positions.error());
  made.positions = *std::move(positions);
  return made;
}

}  // namespace posenc
