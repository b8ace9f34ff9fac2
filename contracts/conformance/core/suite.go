package core

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	stderrors "errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// userAgent is the user agent of the suite, and the manager of the fields that it writes.
const userAgent = "millwright-conformance"

// Cases returns the cases for cores.
func Cases() []conformance.Case[*Env] {
	return slices.Concat(machineCases(), nodeCases(), deletionCases(), pauseCases(), templateCases(), clusterCases(), hostileCases())
}

// Suite runs the cases against the core of a management cluster, once for each version of the contract.
func Suite(ctx context.Context, config *rest.Config, options conformance.RunOptions) (results []report.Result, err error) {
	env, err := newEnv(config, options)
	if err != nil {
		return nil, err
	}
	cleanup := &cleanup{env: env}
	defer func() {
		// Also when the run was interrupted: what is left has to be reported.
		err = stderrors.Join(err, cleanup.run(ctx))
	}()
	if err := prepare(ctx, env, cleanup); err != nil {
		return nil, err
	}
	parallel := options.Parallel
	if parallel == 0 {
		parallel = defaultParallel
	}
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		if asked := options.Selection.Versions; len(asked) > 0 && !slices.Contains(asked, string(contract)) {
			continue
		}
		at := *env
		at.Contract = contract
		findings := conformance.RunParallel(ctx, Cases(), options.Selection, &at, parallel)
		results = append(results, conformance.Collect(options.Selection.Asked(), string(contract), rules.Behavioural, findings)...)
	}
	return results, ctx.Err()
}

// prepare creates what the cases need: the Lease before anything that other runs might remove.
func prepare(ctx context.Context, env *Env, cleanup *cleanup) (err error) {
	if env.Namespace == "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(env.Run)}}
		env.own(namespace)
		if err := env.Client.Create(ctx, namespace); err != nil {
			return errors.Wrap(err, "creating the namespace of the run")
		}
		env.Namespace, cleanup.namespace = namespace.Name, namespace
	}
	if cleanup.stop, err = live(ctx, env); err != nil {
		return err
	}
	if err := leftovers(ctx, env); err != nil {
		return err
	}
	return install(ctx, env)
}

// namespaceOf names the namespace of a run that creates its own.
func namespaceOf(run string) string { return "conformance-" + run }

func newEnv(config *rest.Config, options conformance.RunOptions) (*Env, error) {
	waits, err := timeouts.Parse(options.Timeouts)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "creating a client")
		}
	}
	own := rest.CopyConfig(config)
	own.UserAgent = userAgent
	// Timeouts measure the core, not the suite's rate limit.
	own.QPS = -1
	c, err := client.NewWithWatch(own, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Wrap(err, "creating a client")
	}
	env := &Env{
		Client: writes.Finished(c), Config: config, Namespace: options.Namespace, Run: newRun(), Timeouts: waits,
		Log: options.Log, names: &atomic.Int64{}, logging: &sync.Mutex{}, TargetKubeconfig: options.TargetKubeconfig,
	}
	if env.Log == nil {
		env.Log = io.Discard
	}
	return env, nil
}

// newRun returns the ID of a run.
func newRun() string {
	id := make([]byte, 3)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}
