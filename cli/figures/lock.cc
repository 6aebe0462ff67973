// What makes RoPE relative: moved together, query and key keep their angle and their score. As an
// .svg the picture moves; elsewhere it is the scores by places moved.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_lock {

constexpr std::int64_t most_places = 48;

// Two unit vectors of one pair of channels, which turns once in `turn` places.
struct Scene {
  std::int64_t query = 0, key = 0, turn = 0;
  double degrees = 0;  // by which a place turns the pair
  // The scores after 0, 1, … `turn` places: of both words moved, and of the query moved alone.
  std::vector<double> both = {}, alone = {};
};

Expected<Scene> scene(std::int64_t query, std::int64_t key, std::int64_t turn) {
  Scene out{.query = query, .key = key, .turn = turn};
  const double frequency = 2 * std::numbers::pi / static_cast<double>(turn);
  POSENC_TRY(plan, compile(Scheme{Rope{.scaling = Explicit{.frequencies = {frequency}}}},
                           {.heads = 1, .head_dim = 2}));
  out.degrees = plan.rotate->at(0, 0, 0) * 180 / std::numbers::pi;
  const std::int64_t count = turn + 1;
  // The same content everywhere: (1, 0) at each of the places.
  const auto rotated = [&](std::int64_t from,
                           std::int64_t step) -> Expected<std::vector<std::array<double, 2>>> {
    std::vector<std::array<double, 2>> vectors(static_cast<std::size_t>(count), {1, 0});
    std::vector<std::int64_t> places;
    places.reserve(static_cast<std::size_t>(count));
    for (std::int64_t t = 0; t < count; t++) places.push_back(from + step * t);
    const Tensor x = Tensor::dense(vectors[0].data(), {1, 1, count, 2});
    POSENC_TRY(positions, Positions::ids(places));
    POSENC_CHECK(rotate(plan, x, positions, Side::query, x));
    return vectors;
  };
  POSENC_TRY(q, rotated(query, 1));
  POSENC_TRY(k, rotated(key, 1));
  for (std::size_t t = 0; t < q.size(); t++) {
    out.both.push_back(q[t][0] * k[t][0] + q[t][1] * k[t][1]);
    out.alone.push_back(q[t][0] * k[0][0] + q[t][1] * k[0][1]);
  }
  return out;
}

// The story's times, as shares of one round: both words move, a pause, the query moves, a pause.
constexpr double seconds = 18, together_ends = 0.50, alone_begins = 0.56, alone_ends = 0.96;

// A rule @keyframes: `value` of the step, which is held before the next one is gone to; `step` runs
// to `turn` while the words move together and on to twice that while the query moves alone.
std::string keyframes(const std::string& name, std::int64_t turn, bool jumps,
                      const std::function<std::string(std::int64_t step)>& value) {
  std::string out = fmt::format("@keyframes {}{{", name), before;
  const auto add = [&](double at, std::int64_t step) {
    const std::string says = value(step);
    out += fmt::format("{:.2f}%{{transform:{}{}}}", at * 100, says,
                       jumps ? ";animation-timing-function:step-end" : "");
    before = says;
  };
  add(0, 0);
  const auto walk = [&](double from, double to, std::int64_t first) {
    const double each = (to - from) / static_cast<double>(turn);
    for (std::int64_t i = 0; i < turn; i++) {
      if (value(first + i + 1) == before) continue;  // it stands still
      const double at = from + each * static_cast<double>(i);
      if (!jumps) add(at + 0.45 * each, first + i);
      add(at + each, first + i + 1);
    }
  };
  walk(0.02, together_ends, 0);
  add(alone_begins, turn);
  walk(alone_begins, alone_ends, turn);
  add(1, 2 * turn);
  return out + "}\n";
}

constexpr std::string_view style = R"(
svg{--card:#ffffff;--ink:#1d2126;--quiet:#59616b;--rule:#dcd9d1;--q:#0072b2;--k:#d55e00;--s:#00805e}
@media (prefers-color-scheme:dark){svg{--card:#1c2026;--ink:#e9e7e1;--quiet:#a3abb5;--rule:#3f464f;--q:#56b4e9;--k:#ff9a4d;--s:#3fcf9f}}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
.quiet{fill:var(--quiet)}.mid{text-anchor:middle}.end{text-anchor:end}.big{font-size:30px;font-weight:600;fill:var(--s)}
.q{fill:var(--q)}.k{fill:var(--k)}.s{fill:var(--s)}.line{stroke:var(--rule);fill:none;stroke-width:2}
.hand{stroke-width:5;stroke-linecap:round;fill:none}.hand.q{stroke:var(--q)}.hand.k{stroke:var(--k)}
.say{font-size:18px;font-weight:600}.second,.open{opacity:0}
.dial,.words,.words *,.bar,.number *,.say,.shut,.open,.wedge{animation-duration:VARs;animation-iteration-count:infinite;animation-timing-function:ease-in-out}
)";

// 720 × 330 pixels. The hands' angles are positions × the pair's angle; the scores are the
// library's.
std::string moving(const Scene& scene) {
  const std::int64_t turn = scene.turn, distance = scene.query - scene.key,
                     last = scene.query + 2 * turn;
  const double cell = 672.0 / static_cast<double>(last + 1);
  const auto both = [&](std::int64_t step) { return std::min(step, turn); };
  const auto angle = [&](std::int64_t at) { return -scene.degrees * static_cast<double>(at); };
  const auto score = [&](std::int64_t step) {
    return step <= turn ? scene.both[static_cast<std::size_t>(step)]
                        : scene.alone[static_cast<std::size_t>(step - turn)];
  };
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 330\" width=\"720\" "
      "height=\"330\" role=\"img\" aria-labelledby=\"t d\">\n"
      "<title id=\"t\">RoPE: only the distance counts</title>\n"
      "<desc id=\"d\">Query at position {} and key at position {} turn by {:.4g} degrees a place. "
      "Moved together they keep their angle, and their score stays {:.4f}. When the query moves "
      "alone, the score changes.</desc>\n<style>",
      scene.query, scene.key, scene.degrees, scene.both[0]);
  std::string rules(style);
  rules.replace(rules.find("VAR"), 3, fmt::format("{:g}", seconds));
  out += rules;
  const auto turned = [&](const std::function<std::int64_t(std::int64_t)>& at) {
    return [&, at](std::int64_t step) { return fmt::format("rotate({:g}deg)", angle(at(step))); };
  };
  const auto shifted = [&](const std::function<std::int64_t(std::int64_t)>& at) {
    return [&, at](std::int64_t step) {
      return fmt::format("translateX({:.1f}px)", cell * static_cast<double>(at(step)));
    };
  };
  const auto strip = [](const std::function<std::int64_t(std::int64_t)>& row) {
    return [row](std::int64_t step) { return fmt::format("translateY({}px)", -40 * row(step)); };
  };
  const auto whole = [](std::int64_t step) { return step; };
  const auto after = [&](std::int64_t step) { return std::max<std::int64_t>(0, step - turn); };
  out += keyframes("qt", turn, false, turned(whole)) + keyframes("kt", turn, false, turned(both)) +
         keyframes("qx", turn, false, shifted(whole)) +
         keyframes("kx", turn, false, shifted(both)) + keyframes("qn", turn, true, strip(whole)) +
         keyframes("kn", turn, true, strip(both)) + keyframes("sn", turn, true, strip(after)) +
         keyframes("sb", turn, false,
                   [&](std::int64_t step) { return fmt::format("scaleX({:.4f})", score(step)); });
  const double opens = (together_ends + alone_begins) * 50;
  out += fmt::format(
      "@keyframes first{{0%,{0}%{{opacity:1}}{1}%,99.5%{{opacity:0}}100%{{opacity:1}}}}\n"
      "@keyframes second{{0%,{0}%{{opacity:0}}{1}%,99.5%{{opacity:1}}100%{{opacity:0}}}}\n"
      ".first,.shut,.wedge{{animation-name:first}}.second,.open{{animation-name:second}}\n"
      ".dial{{transform-origin:0 0}}.dial.q{{animation-name:qt}}.dial.k{{animation-name:kt}}\n"
      ".words.q{{animation-name:qx}}.words.k{{animation-name:kx}}.bar{{animation-name:sb}}\n"
      ".number .qn{{animation-name:qn}}.number .kn{{animation-name:kn}}.number "
      ".sn{{animation-name:sn}}\n"
      "@media (prefers-reduced-motion:reduce){{svg *{{animation:none!important}}}}\n</style>\n",
      opens, opens + 1);
  out += "<rect width=\"720\" height=\"330\" rx=\"10\" fill=\"var(--card)\"/>\n";
  // The text's places, and the two words on them.
  out += "<g transform=\"translate(24 52)\">\n<path class=\"line\" stroke-width=\"1\" d=\"";
  for (std::int64_t at = 0; at <= last; at++)
    out += fmt::format("M{:.1f} 0h{:.1f}v14h-{:.1f}z", cell * static_cast<double>(at), cell - 2,
                       cell - 2);
  out += "\"/>\n";
  for (const auto& [of, at, name] :
       {std::tuple{"k", scene.key, "key"}, {"q", scene.query, "query"}})
    out += fmt::format(
        "<g class=\"words {0}\"><rect x=\"{1:.1f}\" y=\"-2\" width=\"{2:.1f}\" height=\"18\" "
        "rx=\"2\" "
        "class=\"{0}\"/><text x=\"{3:.1f}\" y=\"{4}\" class=\"{0} mid\">{5}</text></g>\n",
        of, cell * static_cast<double>(at), cell - 2, cell * (static_cast<double>(at) + 0.4),
        *of == 'q' ? -10 : 34, name);
  out += "</g>\n";
  // The dial, its places, the angle between the hands and the hands.
  out +=
      "<g transform=\"translate(150 208)\">\n<circle class=\"line\" r=\"92\"/><path class=\"line\" "
      "d=\"";
  for (std::int64_t at = 0; at < turn; at++) {
    const double a = angle(at) * std::numbers::pi / 180;
    out += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", 85 * std::cos(a), 85 * std::sin(a),
                       92 * std::cos(a), 92 * std::sin(a));
  }
  const double from = angle(scene.key) * std::numbers::pi / 180,
               to = angle(scene.query) * std::numbers::pi / 180;
  const bool wide = std::fmod(static_cast<double>(distance), static_cast<double>(turn)) * 2 >
                    static_cast<double>(turn);
  out += fmt::format(
      "\"/>\n<g class=\"wedge\"><g class=\"dial k\"><path class=\"s\" opacity=\"0.25\" "
      "d=\"M0 0L{:.2f} {:.2f}A62 62 0 {} 0 {:.2f} {:.2f}z\"/></g></g>\n",
      62 * std::cos(from), 62 * std::sin(from), wide ? 1 : 0, 62 * std::cos(to), 62 * std::sin(to));
  for (const auto& [of, a] : {std::pair{"k", from}, {"q", to}})
    out += fmt::format(
        "<g class=\"dial {0}\"><path class=\"hand {0}\" d=\"M0 0L{1:.2f} {2:.2f}\"/>"
        "<circle class=\"{0}\" cx=\"{1:.2f}\" cy=\"{2:.2f}\" r=\"7\"/></g>\n",
        of, 80 * std::cos(a), 80 * std::sin(a));
  out += "<circle r=\"4\" fill=\"var(--ink)\"/></g>\n";
  // Numbers, each a strip behind a window.
  const auto number = [&](double x, double y, const char* of, const char* classes,
                          std::int64_t count,
                          const std::function<std::string(std::int64_t)>& text) {
    out += fmt::format(
        "<svg x=\"{}\" y=\"{}\" width=\"120\" height=\"36\" class=\"number\"><g class=\"{}\">", x,
        y, of);
    for (std::int64_t i = 0; i < count; i++)
      out += fmt::format("<text x=\"0\" y=\"{}\" class=\"{}\">{}</text>", 40 * i + 27, classes,
                         text(i));
    out += "</g></svg>\n";
  };
  const auto place = [](std::int64_t first) {
    return [first](std::int64_t i) { return std::to_string(first + i); };
  };
  out += "<text x=\"300\" y=\"144\" class=\"quiet\">query at</text>";
  number(368, 117, "qn", "q say", 2 * turn + 1, place(scene.query));
  out += "<text x=\"430\" y=\"144\" class=\"quiet\">key at</text>";
  number(482, 117, "kn", "k say", turn + 1, place(scene.key));
  out += fmt::format("<text x=\"540\" y=\"144\" class=\"quiet\">{:.4g}° a place</text>\n",
                     scene.degrees);
  out += "<text x=\"300\" y=\"195\" class=\"quiet\">score = cos of the angle between</text>";
  number(560, 168, "sn", "big", turn + 1, [&](std::int64_t i) {
    const double value = scene.alone[static_cast<std::size_t>(i)];
    return fmt::format("{}{:.3f}", value < 0 ? "−" : "", std::abs(value));
  });
  out +=
      "<g transform=\"translate(488 222)\"><path class=\"line\" d=\"M-188 -9v18M188 -9v18M0 "
      "-13v26M-188 0h376\"/>"
      "<rect class=\"bar s\" y=\"-9\" width=\"188\" height=\"18\" style=\"transform:scaleX(" +
      fmt::format("{:.4f}", scene.both[0]) +
      ")\"/><text x=\"-188\" y=\"28\" class=\"quiet mid\">−1</text><text y=\"28\" class=\"quiet "
      "mid\">0</text>"
      "<text x=\"188\" y=\"28\" class=\"quiet mid\">1</text></g>\n";
  // The lock, shut and open, and what is to be seen.
  const std::string lock =
      "<rect x=\"0\" y=\"0\" width=\"20\" height=\"15\" rx=\"3\" fill=\"var(--ink)\"/><path "
      "fill=\"none\" "
      "stroke=\"var(--ink)\" stroke-width=\"3\" ";
  out += fmt::format(
      "<g transform=\"translate(300 280)\"><g class=\"shut\">{0}d=\"M4 0v-5a6 6 0 0 1 12 "
      "0v5\"/></g>"
      "<g class=\"open\">{0}d=\"M4 0v-7a6 6 0 0 1 12 -2\"/></g></g>\n"
      "<text x=\"332\" y=\"294\" class=\"say first\">Both move: the score stands still.</text>\n"
      "<text x=\"332\" y=\"294\" class=\"say second\">One moves alone: the score changes.</text>\n"
      "</svg>\n",
      lock);
  return out;
}

Drawing define(CLI::App& app) {
  struct Options {
    std::int64_t query = 9, key = 6, turn = 24;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--query", options->query, "The query's position at first, 0 to 48");
  app.add_option("--key", options->key, "The key's, 0 to 48");
  app.add_option("--turn", options->turn, "Places of a full turn, 2 to 48");
  return [options]() -> Expected<Figure> {
    for (const auto& [flag, value, least] : {std::tuple{"--query", options->query, 0},
                                             {"--key", options->key, 0},
                                             {"--turn", options->turn, 2}})
      if (value < least || value > most_places)
        return fail(flag, fmt::format("must be {} to {}", least, most_places),
                    std::to_string(value));
    POSENC_TRY(scene, of_lock::scene(options->query, options->key, options->turn));
    Figure figure;
    figure.title = fmt::format("Query at {}, key at {}: moved together, and the query alone",
                               scene.query, scene.key);
    figure.caption =
        "One pair of channels, equal content. Moved together, query and key keep the angle between "
        "them, and so the score. As an .svg this picture moves.";
    Panel panel{.x = {.label = "places moved", .column = "places_moved"},
                .y = {.label = "score", .column = "score", .least = -1.1, .most = 1.1}};
    Series both{.name = "both", .colour = line_colour(3), .width = 2},
        alone{.name = "query alone", .colour = line_colour(1), .dashed = true};
    for (std::size_t t = 0; t < scene.both.size(); t++) {
      both.add(static_cast<double>(t), scene.both[t]);
      alone.add(static_cast<double>(t), scene.alone[t]);
    }
    panel.series = {std::move(both), std::move(alone)};
    figure.panels.push_back(std::move(panel));
    figure.moving = moving(scene);
    return figure;
  };
}

constexpr std::string_view examples[] = {"lock.png --query 9 --key 6"};

}  // namespace of_lock

extern const Kind lock{"lock", "Query and key moved together keep their score; an .svg moves",
                       of_lock::define, of_lock::examples};

}  // namespace posenc::cli
