#!/usr/bin/env bash
# Prints what the tests of packages cost in CPU seconds, user and system: to link their test program, once all that it has in it is
# compiled, and to run it with all its child processes, such as the API server; and how many seconds the run took. CPU seconds depend
# less on what else the computer does. Half of their sum is what two processors need at least.
#   test/cost.sh PACKAGE...
set -uo pipefail
cd "$(dirname "$0")/.."
export GORACE=${GORACE:-atexit_sleep_ms=50} GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-3GiB}
mapfile -t race < <(test/race.sh)
program=$(mktemp)
trap 'rm -f "$program"' EXIT
TIMEFORMAT='%U %S %R'
cost() { { time "$@" >"$program.log" 2>&1 || cat "$program.log" >&3; } 2>&1; }
exec 3>&2
printf '%-45s %8s %8s %8s\n' package link run seconds
for package in $(go list "$@"); do
  directory=$(go list -f '{{.Dir}}' "$package")
  go test -race -trimpath "${race[@]}" -ldflags=-s\ -w -c -o "$program" "$package" >&2 || exit 1
  [ -s "$program" ] || continue
  rm "$program"
  link=$(cost go test -race -trimpath "${race[@]}" -ldflags=-s\ -w -c -o "$program" "$package")
  run=$(cd "$directory" && cost "$program" -test.timeout 40m)
  echo "$package $link $run" | awk '{printf "%-45s %8.1f %8.1f %8.1f\n", $1, $2 + $3, $5 + $6, $7}'
  : >"$program"
done
rm -f "$program.log"
