# Millwright. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
# A checkout that belongs to another user is no reason for a build to fail.
# Nobody debugs these programs with DWARF, stack traces do without, and a tenth of a compiler's time goes into it.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -gcflags=all=-dwarf=false
# Gomega gives up after 1 s where a test names no timeout: less than a busy machine pauses a process. Waits of many steps took a minute there.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT ?= 180s
# It asks a hundred times a second where a test names no interval, and with the race detector each question costs an API server and the
# test some milliseconds.
export GOMEGA_DEFAULT_EVENTUALLY_POLLING_INTERVAL ?= 50ms
# Tools are built from their modules, pinned in go.tools.mod and go.lint.mod, into a directory that is
# named after those pins: a changed pin is another directory, never a stale tool.
CACHE := $(or $(MILLWRIGHT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/millwright)
TOOLS := $(CACHE)/tools/$(shell cat go.tools.mod go.tools.sum | sha256sum | cut -c1-12)
LINT := $(CACHE)/lint/$(shell cat go.lint.mod go.lint.sum | sha256sum | cut -c1-12)
CONTROLLER_GEN := $(TOOLS)/controller-gen
KUSTOMIZE := $(TOOLS)/kustomize
GOTESTSUM := $(TOOLS)/gotestsum
GOLANGCI_LINT := $(LINT)/golangci-lint

# The providers that are built, with their simulated clouds: those of the demo if it is given some.
CLOUDS ?= $(or $(filter-out all,$(CLOUD)),aws azure gcp)
SIMULATOR_aws := ec2-simulator
SIMULATOR_azure := azure-simulator
SIMULATOR_gcp := compute-simulator
# The platforms that images are made for, and this computer's.
PLATFORMS ?= linux/amd64 linux/arm64
HERE := linux/$(or $(GOARCH),$(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m))))
comma := ,
PROGRAMS = ./core $(addprefix ./providers/,$(CLOUDS)) ./bootstrap/cloudconfig $(addprefix ./test/clouds/,$(CLOUDS)) ./test/clouds/vm ./test/sandbox/cmd/demo \
  ./test/controlplane/cmd/controlplane
# What --version says. It follows from the commit alone, so that the same commit is always the same program; a release sets VERSION. With
# changes that are not committed it ends with -dirty: that program is not the commit's.
COMMIT := $(or $(COMMIT),$(shell git describe --always --abbrev=12 --exclude='*' --dirty 2>/dev/null),unknown)
VERSION := $(or $(VERSION),$(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null),v0.0.0-dev)
BUILD := millwright.dev/contracts/controller/manager
# The names of the images, in the manifests and of `make images`: one for each manager, such as $(REGISTRY)/millwright-core:$(TAG). clusterctl
# takes no name without a registry's domain.
REGISTRY ?= registry.millwright.dev
TAG ?= dev
# Everything but race builds is compiled with the same flags, here, for the tools and for the control plane, and with the same
# versions of shared modules (config/verify.sh), so that from empty caches each package is compiled once.
# Compilers are short-lived: a tenth of their time goes into collecting garbage. Few of them need more than 1 GiB; where each
# processor has 8 GiB to spare they collect none below 2 GiB, as up to three go commands run as many compilers each; elsewhere less often.
COLLECTOR := $(or $(shell awk -v cpus="$$(nproc)" '/^MemAvailable:/ && $$2 / 1048576 >= 8 * cpus {print "GOGC=off GOMEMLIMIT=2GiB"}' \
  /proc/meminfo),GOGC=400 GOMEMLIMIT=3GiB)
GOBUILD := CGO_ENABLED=0 $(COLLECTOR) $(GO) build -v -trimpath
GORUN := CGO_ENABLED=0 $(GO) run -trimpath
MAKEIMAGES = $(GORUN) ./config/images -registry "$(REGISTRY)" -tag "$(TAG)" -created "$(or $(shell git log -1 --format=%ct 2>/dev/null),0)"
LDFLAGS := -s -w -X $(BUILD).version=$(VERSION) -X $(BUILD).commit=$(COMMIT)

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: export CONTROLPLANE_BUILD := $(if $(filter-out 0,$(KEEP)),build,build-without-kubectl)
demo: ready ## Run the whole life of machines on loopback. KEEP=1 stays up, CLOUD=aws, azure or gcp is one cloud, CLUSTERS=2 splits control and target.
	@KEEP="$(KEEP)" CLUSTERS="$(CLUSTERS)" CLOUD="$(CLOUD)" exec bin/demo

.PHONY: test
test: ready test-images $(GOTESTSUM) ## Run all tests, with the race detector, on the real control plane.
	@KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)" RERUN="$(RERUN)" \
	test/run.sh $(GOTESTSUM) $(TESTFLAGS)

.PHONY: stress
stress: ready ## Repeat the tests of a package N times (20) while the processors are busy: PKG=./core/machine [RUN=TestX].
	@KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)" \
	$(GORUN) ./test/stress -pkg "$(PKG)" -run "$(RUN)" -n "$(or $(N),20)" $(STRESSFLAGS)

.PHONY: simulate
simulate: ## Simulate N lives (10000) of a machine on the example cloud, and as many on one like EC2, in each of which other things go wrong; SEED=… repeats one.
	@SIMULATION_RUNS=$(or $(N),$(if $(SEED),1,10000)) SEED=$(SEED) $(GO) test -count=1 -timeout 2h -v ./providers/driver/inframachine -run '^TestSimulation(WithTokens)?$$'
	@$(MAKE) simulate-remediation

.PHONY: simulate-remediation
simulate-remediation: ## Simulate N times (10000) how unhealthy Machines are replaced while other things go wrong; SEED=… repeats one, or N from there.
	@SIMULATION_RUNS=$(or $(N),$(if $(SEED),1,10000)) SEED=$(SEED) $(GO) test -count=1 -timeout 2h -v ./core/remediation -run '^TestSimulation$$'

.PHONY: conformance
conformance: ready $(if $(PROVIDER),,conformance-static) ## Run the conformance suites: static on manifests, then behavioural on our providers against simulated clouds; write docs/conformance; break each rule in a stand-in (15 minutes).
	@export KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)"; \
	$(GO) test -count=1 -timeout 40m -v ./test/conformance/providers -conformance -write $(if $(PROVIDER),-provider "$(PROVIDER)") $(if $(RULE),-rule "$(RULE)") $(if $(LOGS),-logs "$(abspath $(LOGS))") $(if $(PROVIDER),,&& \
	$(GO) test -count=1 -timeout 40m ./contracts/conformance/behaviour -matrix)

.PHONY: chaos
chaos: controlplane generate ## Let everything go wrong for N Machines (200) during DURATION (2m) on each cloud, or on CLOUD; SEED=… repeats a run. RACE=1 watches for races.
	@KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)" \
	$(GO) test -count=1 -timeout 100m -v ./test/chaos -run TestChaos -seed "$(or $(SEED),$$((RANDOM+1)))" -machines $(or $(N),200) \
	  -cloud $(or $(CLOUD),all) -duration $(or $(DURATION),2m) $(if $(RACE),-race-core) $(if $(LOGS),-logs "$(abspath $(LOGS))")

.PHONY: interop
interop: ready ## Run with what others make, built from its modules: Cluster API's kubeadm and in-memory providers, and its provider for AWS.
	@export KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)"; \
	$(GO) test -count=1 -timeout 60m -v ./test/interop -upstream $(if $(LOGS),-logs "$(abspath $(LOGS))")

.PHONY: conformance-static
conformance-static: generate ## Run the static conformance suite on manifests, ours and others' from their modules, and write docs/conformance/static.
	@$(GO) test -count=1 -timeout 20m -v ./test/conformance/manifests -kustomize "$(abspath $(KUSTOMIZE))"

.PHONY: conformance-cores
conformance-cores: ready ## Run the conformance suite for cores on this core and on Cluster API's, and write the reports below docs/conformance.
	@mkdir -p docs/conformance/v0.1.0
	@export KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)"; \
	$(GO) test -count=1 -timeout 30m -v ./test/conformance -run TestCoresSideBySide -upstream -write "$(abspath docs/conformance/v0.1.0)" $(if $(RULE),-rule "$(RULE)")

.PHONY: conformance-mutants
conformance-mutants: ready ## Break each rule of cores, one at a time, between this core and the API server, and see that the suite finds it.
	@export KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)"; \
	$(GO) test -count=1 -timeout 90m -v ./test/conformance -run TestBrokenCores -matrix $(if $(EXACTLY),-exactly) $(if $(RULE),-rule "$(RULE)")

.PHONY: conformance-bootstrap
conformance-bootstrap: controlplane generate ## Run the conformance suite on Cluster API's bootstrap provider for kubeadm, built from its module, and write its report.
	@mkdir -p docs/conformance/v0.1.0
	@export KUBEBUILDER_ASSETS="$$($(GORUN) ./test/controlplane/cmd/controlplane assets)"; \
	$(GO) test -count=1 -timeout 20m -v ./test/conformance -run TestBootstrapKubeadm -upstream -write "$(abspath docs/conformance/v0.1.0)" $(if $(RULE),-rule "$(RULE)")

# All that demo and tests run, from empty caches. A go command ends with links, which leave processors idle: so what several programs
# need is compiled first, without links, and links run beside other work. What runs side by side has no package in common that
# is not compiled yet: two go commands would both compile it.
.PHONY: ready
ready:
	@packages=$$(CGO_ENABLED=0 $(GO) list -trimpath -f '{{join .Imports "\n"}}' $(PROGRAMS) | sort -u) && \
	$(GOBUILD) $$packages 2>&1 | test/progress.sh "managers, simulators and demo"
	@$(MAKE) -j build bin/demo tools QUIET=1
	@$(MAKE) -j controlplane manifests

.PHONY: build
build: ## Build the managers and the simulators into bin/.
	@mkdir -p bin
	@{ $(GOBUILD) -ldflags '$(LDFLAGS)' -o bin/ ./core $(addprefix ./providers/,$(CLOUDS)) ./bootstrap/cloudconfig && \
	$(foreach cloud,$(CLOUDS),$(GOBUILD) -ldflags '$(LDFLAGS)' -o bin/$(SIMULATOR_$(cloud)) ./test/clouds/$(cloud) &&) \
	$(GOBUILD) -ldflags '$(LDFLAGS)' -o bin/sim-machine ./test/clouds/vm && \
	$(GOBUILD) -ldflags '$(LDFLAGS)' -o bin/container ./test/container/cmd/container; } 2>&1 | QUIET="$(QUIET)" test/progress.sh "managers and simulators"

.PHONY: bin/demo
bin/demo:
	@$(GOBUILD) -o bin/demo ./test/sandbox/cmd/demo 2>&1 | QUIET="$(QUIET)" test/progress.sh "demo"

.PHONY: controlplane
controlplane: ## Build etcd, the Kubernetes control plane and the hollow kubelet from their Go modules, once.
	@$(COLLECTOR) $(GORUN) ./test/controlplane/cmd/controlplane $(or $(CONTROLPLANE_BUILD),build)

.PHONY: assets
assets: ## Print the directory that holds the control plane's binaries.
	@$(GORUN) ./test/controlplane/cmd/controlplane assets

.PHONY: manifests
manifests: generate ## Render the install manifests of each component into out/, with the images REGISTRY/millwright-…:TAG.
	@REGISTRY="$(REGISTRY)" TAG="$(TAG)" config/render.sh $(KUSTOMIZE) out

.PHONY: release
release: generate ## Write the release VERSION=v0.1.0 as a local repository of clusterctl into out/release; see docs/guides/quickstart.md.
	@REGISTRY="$(REGISTRY)" TAG="$(if $(filter file,$(origin TAG)),$(VERSION),$(TAG))" MAKE_IMAGES="$(MAKE)" \
	  config/release.sh $(KUSTOMIZE) "$(VERSION)" "$(or $(RELEASES),out/release)"
	@config/checksums.sh "$(VERSION)" "$(or $(RELEASES),out/release)"
	@case "$(COMMIT)" in *-dirty) echo "release: the programs have changes that are not committed: --version says $(VERSION) of $(COMMIT)" >&2;; esac

# The programs that are put into images.
ONLY ?= core aws azure gcp cloudconfig
PACKAGE_core := ./core
PACKAGE_cloudconfig := ./bootstrap/cloudconfig
package = $(or $(PACKAGE_$(1)),./providers/$(1))

.PHONY: images
images: ## Put the managers, or those of ONLY, into images for PLATFORMS (linux/amd64 linux/arm64) in out/images: OCI layouts, archives, SBOMs, digests.
	@$(foreach manager,$(ONLY),$(if $(filter $(manager),core aws azure gcp cloudconfig),,$(error ONLY=$(manager) is no manager: \
	  give some of core aws azure gcp cloudconfig)))
	@for platform in $(PLATFORMS); do \
	  case $$platform in *,*|*/*/*|/*|*/) good=;; */*) good=yes;; *) good=;; esac; \
	  [ "$$good" ] || { echo "images: PLATFORMS has '$$platform': give pairs like linux/amd64, separated by spaces" >&2; exit 1; }; \
	  dir=out/programs/$${platform/\//_} && mkdir -p $$dir && \
	  { GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GOBUILD) -ldflags '$(LDFLAGS)' -o $$dir/ $(foreach manager,$(ONLY),$(call package,$(manager))); } 2>&1 | \
	    QUIET="$(QUIET)" test/progress.sh "managers for $$platform" || exit 1; \
	done
	@$(MAKEIMAGES) -programs out/programs -out "$(or $(IMAGES),out/images)" -platforms $(subst $() ,$(comma),$(strip $(PLATFORMS))) \
	  -only $(subst $() ,$(comma),$(strip $(ONLY)))

.PHONY: images-check
images-check: ## Compile the commit twice, in two clones, one of them with an empty build cache, and fail unless a manager's image has the same digest: ONLY=cloudconfig.
	@PLATFORMS="$(if $(filter file,$(origin PLATFORMS)),$(HERE),$(PLATFORMS))" config/images/again.sh $(if $(filter file,$(origin ONLY)),cloudconfig,$(ONLY))

# Those of this computer alone, of the programs in bin, for tests: beside those that a person has made in out/images.
.PHONY: test-images
test-images:
	@mkdir -p out/programs/here && ln -sfn ../../../bin out/programs/here/$(subst /,_,$(HERE))
	@$(MAKEIMAGES) -programs out/programs/here -out out/test-images -platforms $(HERE) >/dev/null

##@ Measure

.PHONY: bench
bench: controlplane generate ## Take N Machines (300) through their life under this core and upstream's, and compare the cost.
	@$(GORUN) ./test/scale/cmd/bench -n $(or $(N),300) $(BENCHFLAGS)

# The overshoot guard counts the Machines once more a period after the latest has come: soon, so that it is not within the time of the idle phase.
BENCH_ARGS = --machine-safety-overshooting-period=5s
BENCH_CHECK = $(GORUN) ./test/scale/cmd/bench -n $(or $(N),100) -cores ours -check test/scale/budget.yaml

.PHONY: bench-check
bench-check: controlplane generate ## Fail when N Machines (100) cost more requests or reconciles than the budget, by the default policy and with a health check, or leave anything.
	@$(MAKE) -j2 --output-sync=target bench-check-first bench-check-second

# The first judges Machines as the overlay for the Machine Controller Manager does, the second by a MachineHealthCheck.
# Side by side, since both wait most of the time: what they count does not depend on how long anything takes.
.PHONY: bench-check-first bench-check-second
bench-check-first:
	@$(BENCH_CHECK) -settings first -core-args="$(BENCH_ARGS) --machine-creation-timeout=20m --machine-health-timeout=10m" -out out/bench/first $(BENCHFLAGS)

bench-check-second:
	@$(BENCH_CHECK) -settings second -core-args="$(BENCH_ARGS)" -health-check -out out/bench/second $(BENCHFLAGS)

.PHONY: bench-growth
bench-growth: controlplane generate ## Show how the cost per Machine grows from 100 to 3000.
	@$(GORUN) ./test/scale/cmd/bench -growth 100,300,1000,3000 $(BENCHFLAGS)

.PHONY: bench-clouds
bench-clouds: controlplane generate ## Count the calls of N Machines (300) to Running and away, to EC2 by the provider's program and to all clouds in simulated time; PROVIDERS=ours,capa compares with Cluster API's provider.
	@$(GORUN) ./test/scale/cmd/clouds -n $(or $(N),300) -providers $(or $(PROVIDERS),ours) $(BENCHFLAGS)
	@MACHINES=$(or $(N),300) $(GO) test ./test/drivers -count=1 -run TestCallsPerMachine

.PHONY: bench-drain
bench-drain: controlplane ## Compare many drains that begin at once with the same requests sent bare.
	@KUBEBUILDER_ASSETS=$$($(GORUN) ./test/controlplane/cmd/controlplane assets) $(GO) test ./core/drain -run '^$$' -bench Drains -benchtime 1x

.PHONY: bench-docs
bench-docs: ## Make all measurements of docs/performance.md and write them into it (40 minutes).
	@$(MAKE) bench N=300
	@$(MAKE) bench N=1000 BENCHFLAGS="-settings first"
	@$(MAKE) bench-growth
	@$(GORUN) ./test/scale/cmd/document -into docs/performance.md \
		out/bench/upstream-ours-300.json out/bench/upstream-ours-1000.json out/bench/growth.json

##@ Develop

# The managers of the checkout as processes of this computer, those of PROVIDERS alone.
PROVIDERS_STARTED := $(subst $(comma), ,$(or $(PROVIDERS),aws))
upper = $(shell echo $(1) | tr a-z A-Z)
START_FLAGS = $(foreach name,core $(PROVIDERS_STARTED) cloudconfig,$(if $($(call upper,$(name))_FLAGS),-flags '$(subst ','\'',$(name)=$($(call upper,$(name))_FLAGS))'))

.PHONY: start
start: ## Run the managers from the checkout against CONTROL_KUBECONFIG=… and TARGET_KUBECONFIG=…: PROVIDERS=aws,… WEBHOOKS=none, localhost or an address, CORE_FLAGS=…
	@$(MAKE) build CLOUDS="$(filter aws azure gcp,$(PROVIDERS_STARTED))" QUIET=1
	@$(MAKE) manifests
	@mkdir -p bin && $(GOBUILD) -o bin/start ./test/start 2>&1 | QUIET=1 test/progress.sh "start"
	@exec bin/start -control-kubeconfig "$(CONTROL_KUBECONFIG)" -target-kubeconfig "$(TARGET_KUBECONFIG)" -providers "$(or $(PROVIDERS),aws)" -webhooks "$(or $(WEBHOOKS),none)" $(strip $(START_FLAGS))

.PHONY: kind-up kind-load kind-down
kind-up: ## Make a cluster of kind, by docker, podman or nerdctl: KIND_NAME=millwright, whose context is kind-millwright.
	@$(GORUN) ./test/kind up -name "$(or $(KIND_NAME),millwright)"

kind-load: ## Put the managers' images of this checkout into its nodes.
	@$(MAKE) images PLATFORMS="$(HERE)" IMAGES=out/images
	@$(GORUN) ./test/kind load -name "$(or $(KIND_NAME),millwright)" -images out/images

kind-down: ## Remove the cluster of kind.
	@$(GORUN) ./test/kind down -name "$(or $(KIND_NAME),millwright)"

.PHONY: tilt-up
tilt-up: ## Develop in a cluster of kind with simulated clouds, by config/tilt/Tiltfile; `make kind-up` makes the cluster.
	@command -v tilt >/dev/null || { echo "tilt is not installed: see https://docs.tilt.dev/install.html" >&2; exit 1; }
	@$(MAKE) generate
	@exec tilt up -f config/tilt/Tiltfile $(TILTFLAGS)

# The linters and vet need compiled packages: those that the build has made.
verify lint fmt: export CGO_ENABLED := 0
verify lint fmt: export GOFLAGS := $(GOFLAGS) -trimpath

.PHONY: generate
generate: $(CONTROLLER_GEN) $(KUSTOMIZE) ## Regenerate deepcopy functions, CRDs and RBAC from the code.
	@config/generate.sh $(CONTROLLER_GEN)

.PHONY: mutate
mutate: generate ## Change the planners one operator at a time and list the changes that no test sees (minutes).
	@$(GORUN) ./test/mutate

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code.
	@$(GOLANGCI_LINT) fmt ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters.
	@$(GOLANGCI_LINT) run ./...

.PHONY: verify
verify: ## Fail when generated files, go.mod, formatting or lint are not up to date.
	@config/verify.sh
	@$(MAKE) lint

.PHONY: clean
clean: ## Remove what was built here; the caches outside the tree stay.
	@rm -rf bin out

.PHONY: tools
tools: $(CONTROLLER_GEN) $(KUSTOMIZE)
	@:

$(CONTROLLER_GEN):
	@mkdir -p $(TOOLS)
	@$(GOBUILD) -modfile=go.tools.mod -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen 2>&1 | test/progress.sh "controller-gen"

# One after the other: they have packages in common.
$(KUSTOMIZE): | $(CONTROLLER_GEN)
	@mkdir -p $(TOOLS)
	@$(GOBUILD) -modfile=go.tools.mod -o $@ sigs.k8s.io/kustomize/kustomize/v5 2>&1 | test/progress.sh "kustomize"

$(GOTESTSUM):
	@mkdir -p $(TOOLS)
	@$(GOBUILD) -modfile=go.tools.mod -o $@ gotest.tools/gotestsum 2>&1 | test/progress.sh "gotestsum"

$(GOLANGCI_LINT):
	@mkdir -p $(LINT)
	@$(GOBUILD) -modfile=go.lint.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint 2>&1 | test/progress.sh "golangci-lint"
