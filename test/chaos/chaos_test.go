package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/testenv"
	"millwright.dev/test/testinputs"
)

var (
	seedFlag     = flag.Uint64("seed", 0, "the one seed to run; 0 for the fixed ones")
	machinesFlag = flag.Int("machines", fixedMachines, "about how many Machines there are")
	durationFlag = flag.Duration("duration", fixedDuration, "how long faults and actions last")
	raceFlag     = flag.Bool("race-core", false, "build the core with the race detector")
	coreFlag     = flag.String("core", "", "the core to run; built when empty")
	cloudFlag    = flag.String("cloud", "", "aws, azure, gcp, or all, one after the other; when empty the seed decides")
	logsFlag     = flag.String("logs", "", "a directory that keeps the logs; without it they are kept only when a run fails")
)

const (
	fixedMachines = 14
	fixedDuration = 12 * time.Second
)

// fixedSeeds are run by each `go test`, each on another cloud. All actions are in their plans.
var fixedSeeds = []uint64{54, 73, 128}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	seeds := fixedSeeds
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	logs := *logsFlag
	if logs == "" {
		var err error
		if logs, err = os.MkdirTemp("", "millwright-chaos-"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if !t.Failed() {
				_ = os.RemoveAll(logs)
			}
		}()
	}
	core := *coreFlag
	if core == "" {
		core = build(t, "core", *raceFlag)
	}
	providers := map[string]string{}
	plane, err := StartPlane(ctx, filepath.Join(logs, "plane"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, seed := range seeds {
		for _, cloud := range cloudsOf(seed) {
			if providers[cloud] == "" {
				providers[cloud] = build(t, "providers/"+cloud, false)
			}
			t.Run(fmt.Sprintf("seed %d on %s", seed, cloud), func(t *testing.T) {
				runSeed(t, ctx, plane, Options{
					Seed: seed, Machines: *machinesFlag, Duration: *durationFlag, Cloud: cloud, Core: core, Provider: providers[cloud],
					Dir: filepath.Join(logs, fmt.Sprintf("%s-%d", cloud, seed)),
				})
			})
			if t.Failed() {
				// What is left of a run that failed would be in the way of the next one.
				return
			}
		}
	}
}

// cloudsOf are the clouds that a seed is run on.
func cloudsOf(seed uint64) []string {
	switch *cloudFlag {
	case "":
		return []string{cloudNames[seed%uint64(len(cloudNames))]}
	case "all":
		return cloudNames
	}
	return []string{*cloudFlag}
}

func runSeed(t *testing.T, ctx context.Context, plane *Plane, o Options) { //nolint:revive // The test comes first.
	t.Helper()
	t.Logf("again by: %s", o.ReplayCommand())
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	actions, err := os.Create(filepath.Join(o.Dir, "actions.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = actions.Close() }()
	o.Out = actions
	if err := Run(ctx, plane, o); err != nil {
		t.Errorf("%v\nagain by: %s\nactions and logs are in %s", err, o.ReplayCommand(), o.Dir)
	}
}

// build builds a manager as it is now.
func build(t *testing.T, pkg string, race bool) string {
	t.Helper()
	testinputs.Repository(t)
	target := filepath.Join(t.TempDir(), filepath.Base(pkg))
	// The least times of the orphan collector, so that it deletes something within a run.
	const orphans = "millwright.dev/providers/driver/orphans"
	ldflags := "-s -w -X " + orphans + ".leastPeriod=1s -X " + orphans + ".leastGrace=2s"
	args, cgo := []string{"build", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", ldflags, "-o", target}, "1"
	if race {
		args = append(args, "-race")
	} else {
		// With the flags of `make build` only the program is linked, and nothing compiled.
		args, cgo = append(args, "-trimpath"), "0"
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...)
	cmd.Dir = testenv.Root()
	// The flags of the test are not those of the program.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return target
}

// TestEveryActionIsInAFixedRun: what a run of `go test` never does is not tested in CI.
func TestEveryActionIsInAFixedRun(t *testing.T) {
	g := NewWithT(t)
	planned, ran, ways := map[act]bool{}, map[string]bool{}, map[string]bool{}
	for _, seed := range fixedSeeds {
		for _, a := range makePlan(Options{Seed: seed, Machines: fixedMachines, Duration: fixedDuration}) {
			planned[a.act] = true
		}
		ran[cloudNames[seed%uint64(len(cloudNames))]] = true
		ways[fmt.Sprintf("the Cluster is deleted: %t", seed%2 == 0)] = true
		ways[fmt.Sprintf("Nodes have the names of their Machines: %t", newKubelets(nil, nil, nil, nil, seed).alike)] = true
	}
	for _, w := range weights {
		g.Expect(planned).To(HaveKey(w.act))
	}
	for _, a := range []act{
		killCore, startCore, killProvider, startProvider, outage, endOutage, blackout, endBlackout, storm, endStorm, deleteDeployment,
	} {
		g.Expect(planned).To(HaveKey(a))
	}
	g.Expect(ran).To(HaveLen(len(cloudNames)), "each on another cloud")
	g.Expect(ways).To(HaveLen(4), "what the seed alone decides goes both ways")
}

// The same seed is the same plan, and another seed another one.
func TestPlanFollowsFromTheSeed(t *testing.T) {
	g := NewWithT(t)
	o := Options{Seed: 3, Machines: 20, Duration: time.Minute}
	g.Expect(makePlan(o)).To(Equal(makePlan(o)))
	other := o
	other.Seed = 4
	g.Expect(makePlan(other)).NotTo(Equal(makePlan(o)))
}
