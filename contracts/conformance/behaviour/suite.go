package behaviour

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	stderrors "errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/timeouts"
	"millwright.dev/contracts/conformance/writes"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// defaultParallel is how many cases run at once.
const defaultParallel = 8

// InfraMachine is the suite for infrastructure machines.
func InfraMachine(ctx context.Context, config *rest.Config, options conformance.RunOptions) ([]report.Result, error) {
	s := suite{suffix: "Machine", cases: InfraMachineCases(), subject: rules.InfraMachine}
	return s.run(ctx, config, options)
}

// BootstrapConfig is the suite for bootstrap configs.
func BootstrapConfig(ctx context.Context, config *rest.Config, options conformance.RunOptions) ([]report.Result, error) {
	s := suite{suffix: "Config", cases: BootstrapConfigCases(), subject: rules.BootstrapConfig}
	return s.run(ctx, config, options)
}

// InfraMachineCases returns the cases for an infrastructure machine and its template.
func InfraMachineCases() []conformance.Case[*Env] {
	return slices.Concat(
		[]conformance.Case[*Env]{infraLife(), infraRepeat(), infraDomain(), infraMove(), infraSecrets()}, infraPauses(), infraWaits(),
		[]conformance.Case[*Env]{templates("IT-004", "IT-005", "IT-006"), infraRestart()},
	)
}

// suite runs the cases of a kind.
type suite struct {
	// suffix is the suffix of the names of such kinds.
	suffix  string
	subject rules.Subject
	cases   []conformance.Case[*Env]
}

func (s *suite) run(ctx context.Context, config *rest.Config, options conformance.RunOptions) (results []report.Result, err error) {
	sample, err := ParseSample(options.Sample, s.suffix)
	if err != nil {
		return nil, err
	}
	waits, err := timeouts.Parse(options.Timeouts)
	if err != nil {
		return nil, err
	}
	c, err := connect(config)
	if err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = io.Discard
	}
	kinds, err := kindsOf(ctx, c, sample.Subject.GroupVersionKind(), options.Selection.Versions)
	if err != nil {
		return nil, err
	}
	env := &Env{
		Client: c, Namespace: options.Namespace, Run: newRun(), Sample: sample, Timeouts: waits, Probe: options.Probe, Restart: options.Restart,
		Log: options.Log, names: &atomic.Int64{}, logging: &sync.Mutex{},
	}
	cleanup := newCleanup(env)
	defer func() {
		// Also when the run was interrupted: what is left has to be reported.
		err = stderrors.Join(err, cleanup.run(ctx))
	}()
	if err := env.prepare(ctx, cleanup, kinds); err != nil {
		return nil, err
	}
	for _, resolved := range kinds {
		cleanup.kinds = append(cleanup.kinds, resolved.GVK)
		at := *env
		at.Contract, at.Kind = resolved.Contract, resolved.GVK
		found, err := s.runAt(ctx, &at, options)
		results = append(results, found...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// runAt runs the cases under one version of the contract. Those that restart the provider run alone.
func (s *suite) runAt(ctx context.Context, env *Env, options conformance.RunOptions) ([]report.Result, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	env.recorder = newRecorder()
	started := make(chan error, 1)
	go env.recorder.run(watching, env.Client, env.Kind, env.Namespace, started)
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "watching %s", env.Kind.Kind)
	}
	parallel := options.Parallel
	if parallel == 0 {
		parallel = defaultParallel
	}
	alone := func(c conformance.Case[*Env]) bool { return c.Name == restartCase }
	together := slices.DeleteFunc(slices.Clone(s.cases), alone)
	findings := conformance.RunParallel(ctx, together, options.Selection, env, parallel)
	restarts := slices.DeleteFunc(slices.Clone(s.cases), func(c conformance.Case[*Env]) bool { return !alone(c) })
	findings = append(findings, conformance.Run(ctx, restarts, options.Selection, env)...)
	asked := slices.DeleteFunc(options.Selection.Asked(), func(r rules.Rule) bool { return r.Subject != s.subject })
	return conformance.Collect(asked, string(env.Contract), rules.Behavioural, findings), ctx.Err()
}

// restartCase is the case that would disturb other cases.
const restartCase = "Restart"

func connect(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "creating a client")
		}
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "millwright-conformance"
	// Timeouts measure the provider, not the suite's rate limit.
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Wrap(err, "creating a client")
	}
	return writes.Finished(c), nil
}

// newRun returns the ID of a run.
func newRun() string {
	id := make([]byte, 3)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

// kindsOf returns the versions of the contract that the kind claims to implement, with the newest version of its API for each.
func kindsOf(ctx context.Context, c client.Client, kind schema.GroupVersionKind, asked []string) ([]version.Resolved, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	name := version.CRDName(kind.GroupKind())
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, errors.Wrapf(err, "reading the CRD of %s, the kind of the sample", kind.Kind)
	}
	var kinds []version.Resolved
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		claimed := crd.Labels[version.Label(contract)]
		if claimed == "" || len(asked) > 0 && !slices.Contains(asked, string(contract)) {
			continue
		}
		resolved, err := version.FromLabels(kind.GroupKind(), map[string]string{version.Label(contract): claimed})
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, resolved)
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%s claims none of the selected versions of the contract: it has the labels %v", name, crd.Labels)
	}
	return kinds, nil
}

// prepare creates the namespace and the sample's objects that exist once.
func (e *Env) prepare(ctx context.Context, cleanup *cleanup, kinds []version.Resolved) (err error) {
	if e.Namespace == "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(e.Run)}}
		e.own(namespace)
		if err := e.Client.Create(ctx, namespace); err != nil {
			return errors.Wrap(err, "creating the namespace of the run")
		}
		e.Namespace = namespace.Name
		cleanup.namespace = namespace
	}
	if cleanup.stop, err = e.life(kinds).Live(ctx); err != nil {
		return err
	}
	if err := e.leftovers(ctx, kinds, cleanup.namespace != nil); err != nil {
		return err
	}
	for _, document := range e.Sample.once {
		object, err := decode(filled(document, "", e.Namespace, "marker-"+e.Run+"-secret"))
		if err != nil {
			return errors.Wrap(err, "reading an object of the sample")
		}
		e.planted = append(e.planted, secretValues(object)...)
		if object.GetNamespace() == "" {
			if namespaced, err := e.Client.IsObjectNamespaced(object); err == nil && namespaced {
				object.SetNamespace(e.Namespace)
			}
		}
		e.own(object)
		if err := e.Client.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %s %s of the sample", object.GetKind(), object.GetName())
		}
		cleanup.once = append(cleanup.once, object)
	}
	if err := e.validSample(ctx, kinds); err != nil {
		return err
	}
	return e.refuseCore(ctx)
}
