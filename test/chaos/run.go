package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/faults"
	"millwright.dev/test/process"
)

// maxDelay is the longest that a slow answer takes.
const maxDelay = 3 * time.Second

// run is one run.
type run struct {
	Options
	plane     *Plane
	namespace string
	begin     time.Time

	account   *ec2.Server
	endpoint  *httptest.Server
	kubelets  *kubelets
	core, aws *child
	// The proxies are named after who uses them and what is behind.
	coreManagement, coreTarget, awsManagement *faults.Proxy
	cloud                                     *faults.Decider
	history                                   *history
	// writes are the requests of the core that change something.
	writes atomic.Int64

	// What the actions remember.
	token  int
	waves  int
	paused []client.Object
	// vanished are Machines by the provider ID of their instance, bereft those whose AWSMachine was deleted.
	vanished map[string]string
	bereft   map[string]bool
	// deletedNodes are Nodes that an action has deleted, or the machine behind them: nobody drains what is not there.
	deletedNodes map[string]bool
	// single are the Machines without owner that must be there, by name.
	single map[string]bool

	mu sync.Mutex
}

// Run runs one seed on a plane and returns what is wrong at the end.
func Run(ctx context.Context, plane *Plane, o Options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{
		Options: o, plane: plane, namespace: fmt.Sprintf("chaos-%d", o.Seed), begin: time.Now(),
		vanished: map[string]string{}, bereft: map[string]bool{}, deletedNodes: map[string]bool{}, single: map[string]bool{},
	}
	if err := r.setUp(ctx); err != nil {
		return err
	}
	defer r.tearDown()
	r.note("seed %d: %d Machines, %s of faults and actions", o.Seed, o.Machines, o.Duration)
	if err := r.grow(ctx); err != nil {
		return err
	}
	if err := r.cause(ctx); err != nil {
		return err
	}
	return r.verify(ctx)
}

// note prints a line with the time since the beginning.
func (r *run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Out, "%7.2fs %s\n", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) setUp(ctx context.Context) error {
	r.cloud = faults.NewDecider("cloud", r.Seed, maxDelay, 1)
	r.account = ec2.New(ec2.Options{Seed: r.Seed + 1, Delays: simapi.Delays{
		Pending: 500 * time.Millisecond, ShuttingDown: 700 * time.Millisecond, Consistency: 300 * time.Millisecond,
	}})
	r.endpoint = httptest.NewUnstartedServer(faults.Cloud(r.account, r.cloud, faults.CloudRates()))
	r.endpoint.Start()
	r.kubelets = newKubelets(r.account, r.plane.providers.Client(), r.plane.direct, r.note, r.Seed)
	if err := r.startProxies(); err != nil {
		return err
	}
	if err := r.createWorld(ctx); err != nil {
		return err
	}
	r.history = newHistory()
	if err := r.history.record(ctx, r.plane.direct, r.namespace); err != nil {
		return err
	}
	go r.kubelets.run(ctx)
	if err := r.prepareChildren(); err != nil {
		return err
	}
	for _, c := range []*child{r.core, r.aws} {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) startProxies() error {
	for _, p := range []struct {
		proxy **faults.Proxy
		name  string
		seen  func(*http.Request)
	}{
		{&r.coreManagement, "core/management", r.countWrite},
		{&r.coreTarget, "core/target", r.countWrite},
		{&r.awsManagement, "aws/management", nil},
	} {
		proxy, err := faults.NewProxy(faults.Options{
			Config:  r.plane.server.Config(),
			Decider: faults.NewDecider(p.name, r.Seed, maxDelay, 1),
			Rates:   faults.DefaultRates(),
			Seen:    p.seen,
		})
		if err != nil {
			return err
		}
		*p.proxy = proxy
		proxy.Allow(r.tokenName())
	}
	return nil
}

func (r *run) countWrite(request *http.Request) {
	if request.Method != http.MethodGet {
		r.writes.Add(1)
	}
}

func (r *run) tokenName() string { return fmt.Sprintf("token-%d", r.token) }

// deciders are all that make faults.
func (r *run) deciders() []*faults.Decider {
	return []*faults.Decider{r.coreManagement.Decider, r.coreTarget.Decider, r.awsManagement.Decider, r.cloud}
}

// createWorld makes the objects of the beginning.
func (r *run) createWorld(ctx context.Context) error {
	kubeconfig, err := r.coreTarget.Kubeconfig(r.tokenName())
	if err != nil {
		return err
	}
	shape := shapeOf(r.Machines)
	objects := append(r.foundations(), r.kubeconfigSecret(kubeconfig))
	for _, g := range shape.deployments {
		objects = append(objects, r.deployment(g))
	}
	for _, g := range shape.sets {
		objects = append(objects, r.machineSet(g))
	}
	for i := range shape.single {
		name := fmt.Sprintf("single-%d", i)
		r.single[name] = true
		objects = append(objects, r.singleMachine(name)...)
	}
	for _, object := range objects {
		if err := r.plane.direct.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %T %s", object, object.GetName())
		}
	}
	return nil
}

// prepareChildren says how the programs are run.
func (r *run) prepareChildren() error {
	core, err := r.program("core", r.Core, r.coreManagement, nil)
	if err != nil {
		return err
	}
	aws, err := r.program("aws", r.AWS, r.awsManagement, []string{
		"--launches-per-second=50", "--launch-burst=50", "--instance-visibility-grace=10s",
		"--inventory-fast-interval=500ms", "--inventory-slow-interval=3s", "--cloud-call-timeout=10s",
	})
	if err != nil {
		return err
	}
	aws.spec.Env = append(aws.spec.Env,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIACHAOS00000000000", "AWS_SECRET_ACCESS_KEY=chaos",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL_EC2="+r.endpoint.URL)
	r.core, r.aws = core, aws
	return nil
}

func (r *run) program(name, path string, proxy *faults.Proxy, args []string) (*child, error) {
	home := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, errors.Wrapf(err, "making the folder of %s", name)
	}
	content, err := proxy.Kubeconfig(r.tokenName())
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return nil, errors.Wrapf(err, "writing the kubeconfig of %s", name)
	}
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + r.namespace, "--diagnostics-address=0", "--health-addr=0",
		fmt.Sprintf("--webhook-port=%d", port), "--v=3",
	}, args...)
	return &child{note: r.note, spec: process.Spec{
		Name: name, Path: path, Args: args, Dir: home, CleanEnv: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=halt_on_error=0"},
		Log: filepath.Join(r.Dir, name+".log"),
	}}, nil
}

func (r *run) tearDown() {
	r.core.kill()
	r.aws.kill()
	for _, p := range []*faults.Proxy{r.coreManagement, r.coreTarget, r.awsManagement} {
		p.Close()
	}
	r.endpoint.CloseClientConnections()
	r.endpoint.Close()
	r.account.Close()
}

// grow lets most Machines run before anything is done to them; faults there are from the beginning.
func (r *run) grow(ctx context.Context) error {
	return r.await(ctx, "most Machines run", func(s *state) []string {
		var p list
		for _, m := range s.machines.Items {
			if m.Status.Phase != string(clusterv1.MachinePhaseRunning) {
				p.add("Machine %s is %s", m.Name, m.Status.Phase)
			}
		}
		for i := len(s.machines.Items); i < r.Machines; i++ {
			p.add("Machine number %d is not there", i)
		}
		if len(p) <= r.Machines/4 {
			return nil
		}
		return p
	})
}

// cause is the first part of a run: everything goes wrong.
func (r *run) cause(ctx context.Context) error {
	plan, begin := makePlan(r.Options), time.Now()
	for _, a := range plan {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(begin.Add(a.at))):
		}
		said, err := r.do(ctx, a)
		if err != nil {
			return errors.Wrapf(err, "%s", a)
		}
		r.note("%s%s", a.act, prefixed(": ", said))
	}
	return r.calm(ctx)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// calm ends everything that goes wrong.
func (r *run) calm(ctx context.Context) error {
	for _, d := range r.deciders() {
		d.SetFactor(0)
		d.SetOutage(false)
	}
	if _, err := r.unpause(ctx); err != nil {
		return err
	}
	for _, c := range []*child{r.core, r.aws} {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	var said []string
	for name, d := range map[string]*faults.Decider{"core/management": r.coreManagement.Decider, "core/target": r.coreTarget.Decider, "aws/management": r.awsManagement.Decider, "cloud": r.cloud} {
		for _, kind := range d.Kinds() {
			said = append(said, fmt.Sprintf("%s %s %d", name, kind, d.Injected()[kind]))
		}
	}
	r.note("calm; faults were: %s", strings.Join(said, ", "))
	return nil
}

// listAll is for what a run reads as a whole.
func (r *run) listAll(ctx context.Context, list client.ObjectList) error {
	return errors.Wrapf(r.plane.direct.List(ctx, list, client.InNamespace(r.namespace)), "listing %T", list)
}
