// Tensors as llama-eval-callback prints them: a header with the shape, then of every axis the first
// three and the last three entries, with four decimals. Of a head's channels neighbours are among
// them, partners half a head away are not.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "posenc/identify.h"
#include "src/core/trimmed.h"
#include "src/identify/dump.h"
#include "src/identify/frequency_fit.h"

namespace posenc {
namespace {

using detail::ChannelPair, detail::Dump;

constexpr std::int64_t shown_ends = 3;
constexpr double last_digit = 1e-4 / 3.5;  // rounding to four decimals: root mean square
constexpr std::int64_t most_extent = std::int64_t{1} << 40;

// The indexes of an axis that are printed.
std::vector<std::int64_t> shown_of(std::int64_t extent) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < extent && i < shown_ends; ++i) list.push_back(i);
  for (std::int64_t i = std::max(shown_ends, extent - shown_ends); i < extent; ++i)
    list.push_back(i);
  return list;
}

// "Kcur-0 = (f32) ROPE(Kcur-0{64, 3, 8, 1}, inp_pos{8, 1, 1, 1}}) = {64, 3, 8, 1}"
struct PrintedHeader {
  std::string_view name, operation, source;
  std::int64_t extent[4] = {};
};

std::optional<PrintedHeader> header_of(std::string_view line) {
  const std::size_t type = line.find(" = ("), result = line.rfind(") = {");
  if (type == line.npos || result == line.npos || result < type) return {};
  PrintedHeader header{.name = detail::trimmed(line.substr(0, type))};
  if (const std::size_t colon = header.name.rfind(": "); colon != line.npos)
    header.name = detail::trimmed(header.name.substr(colon + 2));
  const std::size_t behind = line.find(')', type), open = line.find('(', behind);
  if (behind == line.npos || open == line.npos) return {};
  header.operation = detail::trimmed(line.substr(behind + 1, open - behind - 1));
  const std::size_t brace = line.find('{', open);
  if (brace == line.npos) return {};
  header.source = detail::trimmed(line.substr(open + 1, brace - open - 1));
  const char* at = line.data() + result + 5;
  const char* const end = line.data() + line.size();
  for (std::int64_t& extent : header.extent) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent < 1 || extent > most_extent) return {};
    at = next;
  }
  return header;
}

// Rows of numbers begin with a bracket and a number; "..." stands between the ends.
void read_row(std::string_view line, std::vector<double>& numbers) {
  for (std::size_t at = line.find('['); at < line.size();) {
    at = line.find_first_not_of(" ,[]", at);
    if (at == line.npos) return;
    const std::size_t end = std::min(line.find_first_of(" ,]", at), line.size());
    double number = 0;
    const auto [behind, error] = std::from_chars(line.data() + at, line.data() + end, number);
    if (error == std::errc{} && behind == line.data() + end) numbers.push_back(number);
    at = end;
  }
}

struct PrintedTensor {
  std::string operation = {}, source = {};
  std::int64_t extent[4] = {};
  std::vector<double> numbers = {};
  std::size_t expected = 0;
};

std::int64_t layer_in(std::string_view name) {
  std::int64_t layer = -1;
  const std::size_t dash = name.rfind('-');
  if (dash != name.npos) std::from_chars(name.data() + dash + 1, name.data() + name.size(), layer);
  return layer;
}

class EvalCallback {
 public:
  std::vector<PrintedRotation> read(std::string_view text) && {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish();
    return std::move(found_);
  }

 private:
  void take(std::string_view line) {
    if (const auto header = header_of(line)) {
      finish();
      name_ = header->name;
      now_ = {.operation = std::string(header->operation), .source = std::string(header->source)};
      std::ranges::copy(header->extent, now_.extent);
      // A fourth axis is printed whole, and heads have none.
      now_.expected = header->extent[3] == 1 ? 1 : 0;
      for (const std::int64_t extent : header->extent)
        now_.expected *= static_cast<std::size_t>(std::min(extent, 2 * shown_ends));
    } else if (now_.expected > now_.numbers.size()) {
      read_row(line, now_.numbers);
    }
  }

  void finish() {
    if (now_.numbers.size() == now_.expected && now_.expected > 0) {
      if (now_.operation == "ROPE") rotated();
      last_[name_] = std::move(now_);
    }
    now_ = {};
  }

  // Its source is what was printed last under that name: before and after are often called the
  // same.
  void rotated() {
    const auto before = last_.find(now_.source);
    if (before == last_.end() || !std::ranges::equal(before->second.extent, now_.extent)) return;
    const auto [dim, heads, tokens, one] = now_.extent;
    PrintedRotation rotation{.name = name_,
                             .layer = layer_in(name_),
                             .dim = dim,
                             .heads = shown_of(heads),
                             .tokens = shown_of(tokens),
                             .channels = shown_of(dim)};
    // Printed [token][head][channel].
    const auto ordered = [&](const std::vector<double>& from) {
      std::vector<double> to;
      const std::size_t row = rotation.channels.size(), step = rotation.heads.size() * row;
      for (std::size_t h = 0; h < rotation.heads.size(); ++h)
        for (std::size_t t = 0; t < rotation.tokens.size(); ++t)
          to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(t * step + h * row),
                    from.begin() + static_cast<std::ptrdiff_t>(t * step + (h + 1) * row));
      return to;
    };
    rotation.before = ordered(before->second.numbers);
    rotation.after = ordered(now_.numbers);
    found_.push_back(std::move(rotation));
  }

  std::string name_;
  PrintedTensor now_;
  std::map<std::string, PrintedTensor> last_;
  std::vector<PrintedRotation> found_;
};

double size_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x * x;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(numbers.size(), 1)));
}

class PrintedIdentification {
 public:
  explicit PrintedIdentification(const PrintedRotation& from) : from_(from) {
    dump_.heads = std::ssize(from.heads);
    dump_.tokens = std::ssize(from.tokens);
    dump_.dim = std::ssize(from.channels);
    dump_.before = from.before;
    dump_.after = from.after;
    dump_.positions = {from.tokens};
    dump_.noise = last_digit / std::max(size_of(from.after), 1e-4);
  }

  Identified run() && {
    const std::vector<std::int64_t> changed = detail::changed_channels(dump_);
    if (changed.empty()) {
      say("none of the channels that are printed changes by more than their last digit");
      return std::move(out_);
    }
    const bool front = neighbours(0), back = neighbours(dump_.dim - 2);
    if (!front && !back) {
      say("the channels that are printed do not rotate with their neighbours, so the pairing is "
          "not "
          "interleaved; a partner half a head away is not printed. A state file shows all "
          "channels: "
          "posenc identify --how llama.cpp");
      return std::move(out_);
    }
    out_.verdict = Rotated::rotation;
    out_.pairing = Pairing::interleaved;
    out_.first_dim = front ? 0 : from_.channels[static_cast<std::size_t>(dump_.dim - 2)];
    out_.rotary_dim = back ? from_.dim - out_.first_dim : 2;
    if (front) measure(0);
    if (back && dump_.dim > 3) measure(dump_.dim - 2);
    if (!back)
      say("rotary_dim: the head's last channels do not change, as too slow ones would not");
    name_base();
    return std::move(out_);
  }

 private:
  void say(std::string sentence) { out_.cannot_tell.push_back(std::move(sentence)); }

  bool neighbours(std::int64_t a) const {
    return a >= 0 && detail::unexplained(dump_, a, a + 1) < 0.1;
  }

  void measure(std::int64_t a) {
    detail::Turning turning = detail::turning(dump_, {a, a + 1});
    turning.spread = spread_of(a);
    const auto line = detail::fit_line(dump_.positions.front(), turning);
    if (!line) return;
    const std::int64_t channel = from_.channels[static_cast<std::size_t>(a)];
    out_.pairs.push_back({channel, channel + 1, line->frequency, line->resolution});
    out_.sign = line->frequency < 0 ? -1 : 1;
    out_.residual = std::max(out_.residual, detail::unexplained(dump_, a, a + 1));
  }

  // Decimals are cut alike in all channels, so that the smallest token is known worst.
  double spread_of(std::int64_t a) const {
    double least = 0;
    for (std::int64_t t = 0; t < dump_.tokens; ++t) {
      double square = 0;
      for (std::int64_t h = 0; h < dump_.heads; ++h)
        square += std::pow(dump_.is(h, t, a), 2) + std::pow(dump_.is(h, t, a + 1), 2);
      least = t == 0 ? square : std::min(least, square);
    }
    return 2 * last_digit / std::sqrt(std::max(least, last_digit * last_digit));
  }

  // Of two pairs a base, and nothing more.
  void name_base() {
    std::vector<detail::Measured> measured;
    for (const IdentifiedPair& pair : out_.pairs) {
      const double frequency = static_cast<double>(out_.sign) * pair.frequency;
      if (frequency > 4 * pair.resolution)
        measured.push_back({(pair.a - out_.first_dim) / 2, frequency, pair.resolution});
    }
    if (measured.size() == 2) {
      const auto fits = detail::fit_frequencies(measured, out_.rotary_dim);
      if (!fits.empty() && std::holds_alternative<Unscaled>(fits.front().scaling))
        out_.frequencies = fits.front();
    }
    say("base and scaling: of the pairs that are printed " + std::to_string(measured.size()) +
        " turn visibly, and what lies between is not printed; a state file shows all: posenc "
        "identify --how llama.cpp");
  }

  const PrintedRotation& from_;
  Dump dump_;
  Identified out_;
};

}  // namespace

Expected<std::vector<PrintedRotation>> read_eval_callback(std::string_view text,
                                                          std::string_view where) {
  std::vector<PrintedRotation> found = EvalCallback().read(text);
  for (const PrintedRotation& rotation : found)
    for (const auto* numbers : {&rotation.before, &rotation.after})
      if (!std::ranges::all_of(*numbers, [](double x) { return std::isfinite(x); }))
        return fail(std::string(where) + ": " + rotation.name, "every number must be finite");
  if (found.empty())
    return fail(where, "must hold a tensor that ROPE makes, with the one it takes", "",
                "save all that llama-eval-callback prints");
  return found;
}

Expected<Identified> identify(const PrintedRotation& printed) {
  const auto count = printed.heads.size() * printed.tokens.size() * printed.channels.size();
  if (printed.before.size() != count || printed.after.size() != count || count == 0)
    return fail("identify", "a printed rotation has a number for each head, token and channel");
  if (printed.tokens.size() < 2 || printed.channels.size() < 2)
    return fail("identify", "a dump has two tokens or more, of two channels or more");
  return PrintedIdentification(printed).run();
}

}  // namespace posenc
