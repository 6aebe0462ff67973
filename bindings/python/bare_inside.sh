#!/bin/sh
# What bare.sh does within the bare Debian: PARTS, of "pip uv cmake". The libraries come from /try/sources, as a machine that reaches GitHub would fetch them.
set -eu
cd /try
say() { echo "bare: $* ($(date +%H:%M:%S))"; }
for pair in hwy:HWY nlohmann_json:NLOHMANN_JSON CLI11:CLI11 fmt:FMT utf8proc:UTF8PROC; do
  named="${named:-} -DFETCHCONTENT_SOURCE_DIR_${pair#*:}=/try/sources/${pair%%:*}"
done
export CMAKE_ARGS="$named" SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt  # uv else takes its own list of authorities
! command -v cmake ninja >/dev/null || { echo "the root is not bare"; exit 1; }

check() {  # $1: a folder of programs
  "$1/posenc" explain llama-3.1-8b | grep -q 'RoPE, halves, Llama-3 scaling'
  (cd / && "/try/$1/python" -c 'import posenc; assert posenc.plan(posenc.Rope(theta=1e4), head_dim=8).inv_freq[1] == 0.1')
}
python3 -m venv pip-venv
pip-venv/bin/pip install -q -U pip uv
with_pip() {
  say "pip install of the sdist"
  pip-venv/bin/pip install -q posenc-*.tar.gz >log 2>&1 || { tail -20 log; exit 1; }
  check pip-venv/bin
}
# uvx finds the objects of the one before: what it tries is another way in, and no compiler.
with_uv() {
  say "uv pip install of the clone"
  pip-venv/bin/uv venv -q uv-venv
  pip-venv/bin/uv pip install -q --python uv-venv/bin/python -C build-dir=/try/objects ./clone >log 2>&1 || { tail -20 log; exit 1; }
  check uv-venv/bin
  say "uvx --from the clone"
  pip-venv/bin/uvx -q -C build-dir=/try/objects --from ./clone posenc explain llama-3.1-8b | grep -q 'RoPE, halves, Llama-3 scaling'
}
with_cmake() {
  say "FetchContent"
  mkdir -p consumer
  cat >consumer/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(posenc GIT_REPOSITORY /try/clone GIT_TAG HEAD)
FetchContent_MakeAvailable(posenc)
add_executable(user ${posenc_SOURCE_DIR}/examples/find_package/main.cc)
target_link_libraries(user PRIVATE posenc::posenc)
install(TARGETS user)
END
  pip-venv/bin/pip install -q cmake ninja
  PATH=/try/pip-venv/bin:$PATH
  git config --global --add safe.directory /try/clone/.git
  # shellcheck disable=SC2086  # flags are words
  cmake -G Ninja -S consumer -B consumer/build -D CMAKE_BUILD_TYPE=Release $named >log 2>&1 || { tail -20 log; exit 1; }
  cmake --build consumer/build --target user >log 2>&1 || { tail -20 log; exit 1; }
  consumer/build/user | grep -q 'RoPE, head_dim 128: 64 pairs'
  cmake --install consumer/build --prefix consumer/prefix >/dev/null
  [ "$(cd consumer/prefix && find . -type f)" = ./bin/user ] || { echo "the consumer installs more than its own:"; find consumer/prefix -type f; exit 1; }
}
for part in $PARTS; do "with_$part"; done
say "all of it installs"
