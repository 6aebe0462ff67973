#include "evidence/bench/harness/blas.h"

#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include <cstdlib>

namespace posenc::detail {
namespace {

#ifdef _WIN32

void choose_core(const char* core) {
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr) _putenv_s("OPENBLAS_CORETYPE", core);
}
void* opened() { return reinterpret_cast<void*>(LoadLibraryW(L"libopenblas.dll")); }
void* function_of(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

#else

#ifdef __APPLE__
constexpr const char* openblas = "libopenblas.dylib";
#else
constexpr const char* openblas = "libopenblas.so.0";
#endif

void choose_core(const char* core) { setenv("OPENBLAS_CORETYPE", core, 0); }
void* opened() { return dlopen(openblas, RTLD_NOW | RTLD_LOCAL); }
void* function_of(void* library, const char* name) { return dlsym(library, name); }

#endif

}  // namespace

const Blas* Blas::found(std::string_view instruction_set) {
  static const Blas blas = [&] {
    Blas made;
    // Of processors newer than itself OpenBLAS believes the least; it is told what posenc uses.
    if (instruction_set.starts_with("AVX3")) choose_core("SkylakeX");
    if (instruction_set == "AVX2") choose_core("Haswell");
    void* const library = opened();
    if (library == nullptr) return made;
    made.sgemm_ = reinterpret_cast<Sgemm>(function_of(library, "cblas_sgemm"));
    made.set_threads_ =
        reinterpret_cast<void (*)(int)>(function_of(library, "openblas_set_num_threads"));
    return made;
  }();
  return blas.sgemm_ != nullptr && blas.set_threads_ != nullptr ? &blas : nullptr;
}

void Blas::multiply(Factor a, Factor b, float* c, std::int64_t m, std::int64_t n, std::int64_t k,
                    int threads, float keep) const {
  constexpr int row_major = 101, as_is = 111, turned = 112;
  set_threads_(threads);
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  sgemm_(row_major, a.transposed ? turned : as_is, b.transposed ? turned : as_is, rows, columns,
         depth, 1, a.numbers, a.transposed ? rows : depth, b.numbers,
         b.transposed ? depth : columns, keep, c, columns);
}

}  // namespace posenc::detail
