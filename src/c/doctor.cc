// The C interface of diagnose(): evidence in, JSON out.
#include "posenc/doctor.h"

#include <iterator>
#include <ranges>
#include <vector>

#include "src/c/handles.h"

struct posenc_doctor {
  std::vector<posenc::Exhibit> evidence;
};

using namespace posenc;
using namespace posenc::c;

posenc_status posenc_doctor_new(posenc_doctor** out) noexcept {
  if (const auto bad = need("posenc_doctor_new", {{"out", out}})) return bad;
  *out = new posenc_doctor;
  return POSENC_OK;
}

posenc_status posenc_doctor_tell(posenc_doctor* doctor, const char* name, const void* bytes,
                                 size_t size) noexcept {
  if (const auto bad = need("posenc_doctor_tell", {{"doctor", doctor}, {"name", name}})) return bad;
  if (bytes)
    doctor->evidence.push_back(text_exhibit(name, {static_cast<const char*>(bytes), size}));
  else
    std::ranges::move(exhibits_of(name), std::back_inserter(doctor->evidence));
  return POSENC_OK;
}

posenc_status posenc_doctor_json(const posenc_doctor* doctor, const char* engines, int64_t length,
                                 char** json) noexcept {
  if (const auto bad = need("posenc_doctor_json", "json", json, {{"doctor", doctor}})) return bad;
  DoctorOptions options{.length = length};
  for (const auto engine : std::views::split(std::string_view(engines ? engines : ""), ','))
    if (!engine.empty()) options.engines.emplace_back(engine.begin(), engine.end());
  return hand_out_json(diagnose(doctor->evidence, options), json);
}

void posenc_doctor_free(posenc_doctor* doctor) noexcept { delete doctor; }
