#!/bin/sh
# test.sh [fetch]: the crate's tests and its README's examples, without a network but to fetch what
# it depends on. 77: skipped, and why.
skip() { echo "skipped: $1"; exit 77; }
cd "$(dirname "$0")" || exit 1
command -v cargo >/dev/null 2>&1 || skip "there is no cargo here"
least=$(sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)
has=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
[ "$(printf '%s\n' "$least" "$has" | sort -V | head -n 1)" = "$least" ] || skip "Rust $has is older than $least"
./build.sh || exit $?
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../build/rust}" CARGO_TERM_QUIET=true
[ "${1:-}" != fetch ] || cargo fetch --locked || exit 1
cargo fetch --locked --offline >/dev/null 2>&1 || skip "make rust fetches what the crate depends on"
! cargo fmt --version >/dev/null 2>&1 || cargo fmt --check || exit 1
! cargo clippy --version >/dev/null 2>&1 || cargo clippy --locked --offline --all-targets -- -D warnings || exit 1
exec cargo test --locked --offline
