#!/usr/bin/env bash
# Prints the flags, one a line, with which tests are compiled for the race detector.
# Half of the processor time of tests was the detector's work in packages that are not ours: encoders, reflection, transports, matchers.
# Most of the standard library and what is at github.com, golang.org and google.golang.org, such as the clouds' SDKs, is compiled
# without instrumentation of their reads and writes of memory. What stays: all of ours, the types of the API with
# their deep copies, controller-runtime and the provider's cloud simulators, so that a race over an object is found as before; and all
# that orders memory, in every package: the detector's view of mutexes, channels and goroutines is in sync and the runtime, which have it
# by build tag, and that of atomics in the functions of sync/atomic, which a compiler without -race would replace by instructions
# (hence ssa/intrinsics/off), so that no race is reported where there is none. Maps are watched in the runtime, whatever uses them.
# What is lost: a write of ours beside a read by an encoder, where nothing of ours reads the same. RACE=all instruments everything.
# checkptr, which checks uses of unsafe, is off: we have none.
set -euo pipefail
common=-dwarf=false\ -d=checkptr=0
echo "-gcflags=all=$common"
[ "${RACE:-}" = all ] && exit
quiet="-dwarf=false -race=false -d=checkptr=0,ssa/intrinsics/off"
# As few patterns as will do: the go command compiles each again for each package of each test, and 41 of them took it half a minute of
# one processor before the first test began.
echo "-gcflags=std=$quiet"
# crypto does not work without intrinsics, containers hold objects of ours, and the others have the detector's view in them.
for package in crypto/... runtime/... sync/... internal/... container/...; do echo "-gcflags=$package=$common"; done
# github.com, golang.org, google.golang.org, go.yaml.in and their like; klog and kube-openapi; encoders.
for package in g... k8s.io/apimachinery/... k8s.io/client-go/... k8s.io/k... sigs.k8s.io/...; do echo "-gcflags=$package=$quiet"; done
# The last flag that names a package counts: types of the API, controller-runtime and Cluster API.
for package in k8s.io/apimachinery/pkg/apis/meta/v1/... sigs.k8s.io/c...; do echo "-gcflags=$package=$common"; done
