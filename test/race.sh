#!/usr/bin/env bash
# Prints the flags, one a line, with which tests are compiled for the race detector.
# Half of the processor time of tests was the detector's work in packages that are not ours: encoders, reflection, transports, matchers.
# These are compiled without instrumentation of their reads and writes of memory. What stays: all of ours, the types of the API with
# their deep copies, controller-runtime and the provider's cloud simulators, so that a race over an object is found as before; and all
# that orders memory, in every package: the detector's view of mutexes, channels and goroutines is in sync and the runtime, which have it
# by build tag, and that of atomics in the functions of sync/atomic, which a compiler without -race would replace by instructions
# (hence ssa/intrinsics/off), so that no race is reported where there is none. Maps are watched in the runtime, whoever uses them.
# What is lost: a write of ours beside a read by an encoder, where nothing of ours reads the same. RACE=all instruments everything.
# checkptr, which checks uses of unsafe, is off: we have none.
set -euo pipefail
common=-dwarf=false\ -d=checkptr=0
echo "-gcflags=all=$common"
[ "${RACE:-}" = all ] && exit
quiet="-dwarf=false -race=false -d=checkptr=0,ssa/intrinsics/off"
packages=(
  # The standard library, but for sync, sync/atomic, the runtime and containers, and crypto, which does not work without intrinsics.
  bufio bytes compress/... encoding/... fmt go/... hash/... html/... log/... math/... mime/... net/... path/...
  reflect regexp/... sort strconv strings text/... unicode/... internal/bytealg internal/fmtsort internal/reflectlite vendor/golang.org/x/...
  golang.org/x/net/... google.golang.org/protobuf/... go.yaml.in/...
  github.com/antlr4-go/... github.com/aws/... github.com/evanphx/json-patch/... github.com/fxamacker/cbor/... github.com/go-logr/...
  github.com/google/cel-go/... github.com/google/gnostic-models/... github.com/google/go-cmp/... github.com/json-iterator/... github.com/modern-go/...
  github.com/onsi/gomega/... github.com/prometheus/...
  k8s.io/apimachinery/... k8s.io/client-go/... k8s.io/klog/... k8s.io/kube-openapi/...
  sigs.k8s.io/json/... sigs.k8s.io/structured-merge-diff/... sigs.k8s.io/yaml/...
)
for package in "${packages[@]}"; do echo "-gcflags=$package=$quiet"; done
# The last flag that names a package counts.
echo "-gcflags=k8s.io/apimachinery/pkg/apis/meta/v1/...=$common"
