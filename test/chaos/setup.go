package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/tokens"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/faults"
)

func (r *run) setUp(ctx context.Context) error {
	r.cloudFaults = faults.NewDecider("cloud", r.Seed, maxDelay, 1)
	r.account = r.cloud.open(r.Seed + 1)
	r.endpoint = httptest.NewServer(faults.Cloud(r.account, r.cloud.api, r.cloudFaults, faults.CloudRates()))
	r.tokens = httptest.NewServer(tokens.Handler())
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
	go r.watchInstances(ctx)
	if err := r.prepareChildren(); err != nil {
		return err
	}
	for _, c := range []*child{r.core, r.provider} {
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
		{&r.coreTarget, "core/remote", r.countWrite},
		{&r.providerManagement, r.cloud.name + "/management", nil},
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

// createWorld creates the initial objects.
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

// maxRetry is how often a replacement that fails is replaced again.
const maxRetry = 1

// coreFlags turn minutes of production into seconds.
func coreFlags() []string {
	return []string{
		"--machine-safety-apiserver-statuscheck-timeout=2s",
		"--machine-safety-recovery-grace=1s",
		fmt.Sprintf("--machine-creation-timeout=%s", startupFor), fmt.Sprintf("--machine-health-timeout=%s", illFor),
		"--remediation-stop-above=" + stopAbove,
		fmt.Sprintf("--remediation-max-retry=%d", maxRetry), "--remediation-retry-period=6s", "--remediation-min-healthy-period=5s",
		"--machine-safety-overshooting-period=5s",
	}
}

// prepareChildren says how the programs are run.
func (r *run) prepareChildren() error {
	core, err := r.program("core", r.Core, r.coreManagement, coreFlags())
	if err != nil {
		return err
	}
	args, environment := r.cloud.provider(r.endpoint.URL, r.tokens.URL)
	provider, err := r.program(r.cloud.name, r.Provider, r.providerManagement, append([]string{
		"--launches-per-second=50", "--launch-burst=50", "--instance-visibility-grace=8s",
		"--inventory-fast-interval=500ms", "--inventory-slow-interval=3s", "--cloud-call-timeout=4s",
		"--machine-safety-orphan-vms-period=1s", "--leader-elect-resource-namespace=" + r.namespace,
	}, args...))
	if err != nil {
		return err
	}
	provider.spec.Env = append(provider.spec.Env, environment...)
	r.core, r.provider = core, provider
	return nil
}

func (r *run) program(name, path string, proxy *faults.Proxy, args []string) (*child, error) {
	home := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, errors.Wrapf(err, "creating the directory of %s", name)
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
	return &child{note: r.note, spec: childprocess.Spec{
		Name: name, Path: path, Args: args, Dir: home, CleanEnv: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=halt_on_error=0"},
		Log: filepath.Join(r.Dir, name+".log"),
	}}, nil
}

func (r *run) tearDown() {
	r.core.kill()
	r.provider.kill()
	for _, p := range []*faults.Proxy{r.coreManagement, r.coreTarget, r.providerManagement} {
		p.Close()
	}
	for _, server := range []*httptest.Server{r.endpoint, r.tokens} {
		server.CloseClientConnections()
		server.Close()
	}
	r.account.Close()
}
