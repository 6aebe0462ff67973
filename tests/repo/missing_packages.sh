#!/bin/sh
# cmake/need.sh on machines that lack things: every command it asks is a stand-in, and apt-get only
# writes down what it was told.
need=$(cd "$(dirname "$0")/../.." && pwd)/cmake/need.sh
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
failures=0

stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"; chmod +x "$bin/$1"; }
for command in sh mktemp rm cat env; do ln -s "$(command -v $command)" "$bin/$command"; done

# expect STATUS TEXT [APT]: what need.sh must return and begin to say, and what it must tell apt-get.
expect() {
  : >"$bin/apt.log"
  said=$(PATH=$bin "$bin/sh" "$need" 'to test' ninja:ninja-build libfmt-dev </dev/null 2>&1)
  status=$? told=$(cat "$bin/apt.log")
  case $status/$said in
    "$1/$2"*) [ "$told" = "${3-}" ] && return ;;
  esac
  printf 'FAILED, wanted %s/%s\n got %s/%s\n apt-get: %s\n' "$1" "$2" "$status" "$said" "$told"
  failures=$((failures + 1))
}
install='install -y --no-install-recommends'

stand_in dpkg-query 'exit 1'
stand_in id 'echo 1000'
expect 2 'posenc needs ninja-build libfmt-dev to test. There is no apt-get'

stand_in apt-get "echo \$DEBIAN_FRONTEND \"\$@\" >>$bin/apt.log"
cure="posenc needs ninja-build libfmt-dev to test. Run as root: apt-get update && apt-get $install"
expect 2 "$cure ninja-build libfmt-dev"

stand_in sudo 'exit 1'  # it asks for a password, and nobody is there
expect 2 "$cure"

stand_in sudo '[ "$1" = -n ] || exec "$@"'
expect 0 'installing ninja-build libfmt-dev to test (sudo apt-get)' \
  "noninteractive $install ninja-build libfmt-dev"

stand_in id 'echo 0'
stand_in dpkg-query 'printf "libfmt-dev=installed "'
expect 0 'installing ninja-build to test (apt-get)' "noninteractive $install ninja-build"

stand_in ninja ''
said_nothing=$(PATH=$bin "$bin/sh" "$need" 'to test' ninja:ninja-build libfmt-dev 2>&1)
[ -z "$said_nothing" ] || { echo "FAILED, nothing is missing: $said_nothing"; failures=1; }

rm "$bin/ninja"
stand_in apt-get "echo \"\$1\" >>$bin/apt.log; [ \$1 = -q ] && : >$bin/updated; [ -e $bin/updated ]"
expect 0 'installing ninja-build' "$(printf 'install\n-q\ninstall')"

stand_in apt-get 'echo "E: no network"; exit 100'
expect 2 'installing ninja-build to test (apt-get)
E: no network'

exit $failures
