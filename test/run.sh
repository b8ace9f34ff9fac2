#!/usr/bin/env bash
# Runs all tests with the race detector. Names of failed tests and their messages come last, without the logs between.
#   test/run.sh GOTESTSUM [flags of go test]
# TESTPROCS is how many packages run at once: two more than there are processors without. The end-to-end tests are one of them, so that
# another package takes their place when they are done. Each uses half a processor on average (test/cost.sh) and waits otherwise; with more
# of them two processors were overloaded, and tests timed out.
# RERUN=1, which only CI sets: up to eight failures are run once more, each test alone (one of a subtest counts for its parents as
# well). What passes then is listed as flaky at the end: a defect to fix, but not a reason to lose everything else that was tested.
set -uo pipefail
cd "$(dirname "$0")/.."
gotestsum=$1
shift
# Without this each binary with the race detector sleeps for a second at its end; and less garbage collection saves a tenth of the
# time of tests and API servers; the largest test takes 1.6 GB then.
export GORACE=${GORACE:-atexit_sleep_ms=50} GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-3GiB}
mapfile -t race < <(test/race.sh)
mkdir -p out/test
rm -f out/test/*
# The packages that take longest start first, so that no processor idles while the last of them runs. Those that wait most of their time
# (test/scale/lifecycle, core/remote, the example's provider, providers/azure) run beside those that do not: four of these side by side
# leave half of the processors idle.
longest=(test/clusterctl test/e2e core core/machine test/chaos test/scale/lifecycle core/machinedeployment core/remote providers/aws
  test/clouds/example/provider bootstrap/cloudconfig/node providers/azure core/machineset
  test/admission contracts/conformance/behaviour test/start test/drivers core/machinehealth test/conformance core/cluster
  providers/driver/inframachine contracts/conformance/cmd/conformance
  bootstrap/cloudconfig/controller core/remediation
  bootstrap/cloudconfig test/sandbox/cmd/demo core/drain test/tilt providers/gcp
  bootstrap/cloudconfig/approval test/commandline test/doccheck)
all=$(go list ./...) || exit 1
packages=$({ printf 'millwright.dev/%s\n' "${longest[@]}" | grep -Fx "$all"; echo "$all"; } | awk '!seen[$0]++' | tr '\n' ' ')
rerun=()
[ -z "${RERUN:-}" ] || rerun=(--rerun-fails=1 --rerun-fails-max-failures=8 --rerun-fails-report=out/test/flaky)
failed=0
# Without a symbol table a test program is linked for a fifth less; stack traces and race reports do not need it. go vet is among the
# linters of make verify. What is compiled does not depend on where the clone is (-trimpath), so that the next one finds it in Go's cache.
"$gotestsum" --format pkgname --hide-summary=skipped "${rerun[@]}" --packages="$packages" \
  -- -race -trimpath "${race[@]}" -ldflags=-s\ -w -vet=off -timeout 40m -p "${TESTPROCS:-$(($(nproc) + 2))}" "$@" | tee out/test/log || failed=1
if [ "$failed" = 1 ]; then
  echo "failed tests, without their logs:"
  awk '/^=== FAIL/ {print; left = 0} /^ +[a-z0-9_]+_test\.go:[0-9]+:|^panic:|WARNING: DATA RACE/ {left = 15} left > 0 {print; left--}' out/test/log | tail -n 200
fi
[ ! -s out/test/flaky ] || { echo "flaky tests, to be fixed:" && cat out/test/flaky; }
exit "$failed"
