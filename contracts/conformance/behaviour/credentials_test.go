package behaviour_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
)

// credentialed has what needs credentials to end: infrastructure of each Cluster, which needs an identity too, and that identity.
const credentialed = machineSample + `
---
apiVersion: v1
kind: Secret
metadata: {name: identity-credentials}
stringData: {key: of-the-identity}
---
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInControlPlane
metadata: {name: identity, finalizers: [ends.millwright.dev/test]}
---
apiVersion: v1
kind: Secret
metadata: {name: "${CLUSTER_NAME}-credentials"}
stringData: {key: of-the-cluster}
---
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInCluster
metadata: {name: "${CLUSTER_NAME}-infra", finalizers: [ends.millwright.dev/test]}
`

// What needs credentials to end, infrastructure of Clusters as identities, has them, and its Cluster, until it has ended.
func TestCredentialsStayUntilNothingNeedsThem(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	p := provide(t, k, version.V1Beta2, standin.Switches{})
	e := &ender{namespace: p.Namespace, lacking: map[string]string{}, looks: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.run(ctx)
	}()
	options := options(k, p)
	options.Sample, options.Timeouts = []byte(credentialed), []byte(longTimeouts)
	options.Selection.Cases = regexp.MustCompile("^FailureDomain$")
	_, err := k.suite(t.Context(), env.Config, options)
	if err != nil {
		t.Errorf("the run ended with %v", err)
	}
	stop()
	<-over
	if len(e.lacking) > 0 {
		t.Errorf("deleted before what needs it: %v", e.lacking)
	}
	if e.ended < 2 {
		t.Errorf("%d objects were ended, and there were an identity and infrastructure", e.ended)
	}
	for _, kind := range []string{"StandInCluster", "StandInControlPlane"} {
		if list := e.list(t.Context(), kind); len(list) > 0 {
			t.Errorf("%d %s are left", len(list), kind)
		}
	}
}

// ender is a provider that ends what needs credentials, after a while.
type ender struct {
	namespace string
	ended     int
	looks     map[string]int
	lacking   map[string]string
}

func (e *ender) run(ctx context.Context) {
	for ctx.Err() == nil {
		e.look(ctx, "StandInCluster")
		e.look(ctx, "StandInControlPlane")
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *ender) list(ctx context.Context, kind string) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(standin.VersionOf(version.V1Beta2).WithKind(kind + "List"))
	_ = admin.List(ctx, list, client.InNamespace(e.namespace))
	return list.Items
}

// look ends what it has seen being deleted five times.
func (e *ender) look(ctx context.Context, kind string) {
	for _, object := range e.list(ctx, kind) {
		name := object.GetName()
		if object.GetDeletionTimestamp() == nil {
			continue
		}
		if e.looks[name]++; e.looks[name] < 5 {
			continue
		}
		cluster := strings.TrimSuffix(name, "-infra")
		needs := map[string]client.Object{cluster + "-credentials": &corev1.Secret{}}
		if cluster != name {
			needs[cluster], needs["identity"] = &clusterv1.Cluster{}, e.identity()
		}
		for needed, into := range needs {
			err := admin.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: needed}, into)
			if apierrors.IsNotFound(err) || err == nil && into.GetDeletionTimestamp() != nil {
				e.lacking[needed] = name
			}
		}
		object.SetFinalizers(nil)
		if admin.Update(ctx, &object) == nil {
			e.ended++
		}
	}
}

func (e *ender) identity() *unstructured.Unstructured {
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(standin.VersionOf(version.V1Beta2).WithKind("StandInControlPlane"))
	return identity
}
