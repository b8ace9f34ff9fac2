package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/sandbox"
	"millwright.dev/test/sandbox/scenario"
)

// What the demo shows.
const (
	podsDeployed = 6
	podsPromised = 4
)

// allClouds are those of CLOUD=all, the default.
var allClouds = []string{"aws", "azure", "gcp"}

// machines are how many there are in each cloud at first and when they are scaled: three and five of one cloud, as many as there are
// clouds and twice that of several.
func machines(clouds int) (first, scaled int) {
	if clouds == 1 {
		return 3, 5
	}
	return 1, 2
}

// demo is one run.
type demo struct {
	begin    time.Time
	screen   *screen
	logs     string
	clusters int
	keep     bool
	clouds   []string
	// first and scaled are the numbers of Machines in each cloud.
	first, scaled int

	sandbox  *sandbox.Sandbox
	scenario *scenario.Scenario
	// stopWatch ends the watches before their API servers stop.
	stopWatch context.CancelFunc
	// atRunning is what the core had written when the first Machines ran.
	atRunning map[string]int
}

// newDemo reads the settings from the environment, which make passes on: KEEP, CLUSTERS and CLOUD.
func newDemo(out *os.File) (*demo, error) {
	d := &demo{begin: time.Now(), clusters: 1, stopWatch: func() {}}
	if value := os.Getenv("CLUSTERS"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 2 {
			return nil, fmt.Errorf("CLUSTERS is %q, not 1 or 2", value)
		}
		d.clusters = n
	}
	if value := os.Getenv("KEEP"); value != "" {
		keep, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("KEEP is %q, not 1 or 0", value)
		}
		d.keep = keep
	}
	if err := d.chooseClouds(os.Getenv("CLOUD")); err != nil {
		return nil, err
	}
	logs, err := os.MkdirTemp("", "millwright-demo-logs-")
	if err != nil {
		return nil, errors.Wrap(err, "creating the directory for logs")
	}
	d.logs = logs
	d.screen = newScreen(out, d.begin)
	return d, nil
}

func (d *demo) chooseClouds(value string) error {
	switch {
	case value == "" || value == "all":
		d.clouds = allClouds
	case slices.Contains(allClouds, value):
		d.clouds = []string{value}
	default:
		return fmt.Errorf("CLOUD is %q, not %s or all", value, strings.Join(allClouds, ", "))
	}
	d.first, d.scaled = machines(len(d.clouds))
	return nil
}

// all is how many Machines there are if each cloud has that many.
func (d *demo) all(each int) int { return each * len(d.clouds) }

// step is one of the things that the demo shows.
type step struct {
	title string
	run   func(context.Context) error
}

func (d *demo) run(ctx context.Context) error {
	names := strings.Join(d.clouds, ", ")
	steps := []step{
		{"Start a real control plane, simulated clouds (" + names + ") and the managers", d.start},
		{"Apply the samples: a Cluster, and a MachineDeployment for each cloud", d.applySamples},
		{fmt.Sprintf("Wait until %d Machines are Running and their Nodes Ready", d.all(d.first)), d.awaitFirst},
		{fmt.Sprintf("Deploy %d pods of which %d must be available, scale to %d Machines", podsDeployed, podsPromised, d.all(d.scaled)), d.scale},
		{"Replace all Machines by larger ones, in each cloud one more at a time and none less", d.roll},
		{"Delete everything", d.deleteAll},
		{"Check that nothing is left", d.check},
	}
	if d.keep {
		steps = append(steps[:3], step{"Stay up", d.stay})
	}
	for i, s := range steps {
		d.screen.title("[%d/%d] %s", i+1, len(steps), s.title)
		begin := time.Now()
		if err := s.run(ctx); err != nil {
			return errors.Wrapf(err, "step %d (%s)", i+1, s.title)
		}
		d.screen.logf("done in %.1f s", time.Since(begin).Seconds())
	}
	if d.keep {
		return nil
	}
	return d.printTimeline(ctx)
}

func (d *demo) start(ctx context.Context) error {
	var err error
	// The processes do not end with ctx but by down, in the right order.
	background := context.WithoutCancel(ctx)
	d.sandbox, err = startInterruptibly(ctx, background, sandbox.Options{
		Clusters: d.clusters, Clouds: d.clouds, LogDir: d.logs, Progress: d.screen,
	})
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(background)
	d.stopWatch = cancel
	d.scenario, err = scenario.New(watching, d.sandbox, scenario.Options{OnChange: d.screen.refresh})
	if err != nil {
		return err
	}
	d.screen.source(d.scenario.Watch.Machines)
	return nil
}

func (d *demo) applySamples(ctx context.Context) error { return d.scenario.Deploy(ctx, d.first) }

func (d *demo) awaitFirst(ctx context.Context) error {
	if err := d.scenario.AwaitRunning(ctx, d.all(d.first)); err != nil {
		return err
	}
	var err error
	d.atRunning, err = d.sandbox.Writes(d.sandbox.Core)
	return err
}

func (d *demo) scale(ctx context.Context) error {
	if err := d.scenario.DeployWorkload(ctx, podsDeployed, podsPromised); err != nil {
		return err
	}
	if err := d.scenario.Scale(ctx, int32(d.scaled)); err != nil {
		return err
	}
	return d.scenario.AwaitRunning(ctx, d.all(d.scaled))
}

func (d *demo) roll(ctx context.Context) error {
	old := d.scenario.Watch.UIDs()
	if err := d.scenario.Roll(ctx); err != nil {
		return err
	}
	if err := d.scenario.AwaitRolled(ctx, old, d.all(d.scaled)); err != nil {
		return err
	}
	if err := d.scenario.AwaitWorkload(ctx, podsDeployed); err != nil {
		return err
	}
	_, states := d.scenario.Watch.BudgetSatisfied()
	d.screen.logf("the disruption budget held in all %d states that were seen of it", states)
	return nil
}

func (d *demo) deleteAll(ctx context.Context) error {
	if err := d.scenario.DeleteWorkload(ctx); err != nil {
		return err
	}
	if err := d.scenario.DeleteMachines(ctx); err != nil {
		return err
	}
	return d.scenario.DeleteRest(ctx)
}

func (d *demo) check(ctx context.Context) error {
	if err := d.scenario.AwaitNothingLeft(ctx); err != nil {
		return err
	}
	forbidden, err := d.sandbox.Forbidden()
	if err != nil {
		return err
	}
	if len(forbidden) > 0 {
		return errors.Errorf("an install manifest lacks rights; %d times a manager was refused, first:\n%s", len(forbidden), forbidden[0])
	}
	expired, err := d.sandbox.ExpiredWaits(ctx)
	if err != nil {
		return err
	}
	if len(expired) > 0 {
		return errors.Errorf("managers waited for half a minute for events that did not come: %s", strings.Join(expired, "; "))
	}
	d.screen.logf(
		"no machines, disks or network interfaces in the clouds; no Nodes, Secrets, bootstrap tokens, roles, bindings or pending certificate requests in the cluster",
	)
	return nil
}

func (d *demo) stay(ctx context.Context) error {
	d.screen.close()
	fmt.Printf("\nIt stays up until Ctrl-C (or: kill %d). Logs: %s\n\n%s\n", os.Getpid(), d.logs, d.endpoints().text())
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := d.sandbox.Check(); err != nil {
				return err
			}
		}
	}
}

// endpoints are those of the sandbox.
func (d *demo) endpoints() endpoints {
	e := endpoints{
		kubectl: d.sandbox.Kubectl(), control: d.sandbox.Control.KubeconfigPath(), target: d.sandbox.Target.KubeconfigPath(),
		clouds: d.sandbox.Clouds, metrics: []string{d.sandbox.Core.MetricsURL(), d.sandbox.CloudConfig.MetricsURL()},
	}
	for _, c := range d.sandbox.Clouds {
		e.metrics = append(e.metrics, c.Manager.MetricsURL())
	}
	return e
}

// startInterruptibly starts a sandbox whose processes live until background is done, and gives up when ctx is.
func startInterruptibly(ctx, background context.Context, options sandbox.Options) (*sandbox.Sandbox, error) {
	starting, cancel := context.WithCancel(background)
	release := context.AfterFunc(ctx, cancel)
	s, err := sandbox.Start(starting, options)
	if !release() && err == nil {
		// Interrupted at the very end: the processes are stopping already.
		return s, errors.Wrap(context.Cause(ctx), "starting the sandbox")
	}
	return s, err
}

// down ends everything that runs.
func (d *demo) down() error {
	d.stopWatch()
	if d.sandbox == nil {
		return nil
	}
	return d.sandbox.Stop()
}

func (d *demo) removeLogs() { _ = os.RemoveAll(d.logs) }
