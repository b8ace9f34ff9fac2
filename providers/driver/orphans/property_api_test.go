package orphans

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// memoryAPI is an API server with what the collector reads and writes, and nothing else.
type memoryAPI struct {
	client.Client

	record   *corev1.ConfigMap
	version  int
	clusters map[string]*clusterv1.Cluster
	machines map[string]*examplev1.ExampleMachine
	// fails is asked before each request, and lose after each write.
	fails, lose func() bool
}

func (a *memoryAPI) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch {
	case a.fails():
		return errAPI
	case a.record == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	a.record.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func (a *memoryAPI) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return a.Update(ctx, obj)
}

func (a *memoryAPI) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	next := obj.(*corev1.ConfigMap).DeepCopy()
	if a.fails() {
		return errAPI
	}
	if a.record != nil && next.ResourceVersion != a.record.ResourceVersion || a.record == nil && next.ResourceVersion != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, next.Name, errors.New("it was changed"))
	}
	a.version++
	next.ResourceVersion = fmt.Sprint(a.version)
	a.record = next
	if a.lose() {
		return errAPI
	}
	return nil
}

func (a *memoryAPI) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if a.fails() {
		return errAPI
	}
	switch list := list.(type) {
	case *metav1.PartialObjectMetadataList:
		for _, c := range a.clusters {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: c.ObjectMeta})
		}
	case *clusterv1.ClusterList:
		for _, c := range a.clusters {
			list.Items = append(list.Items, *c)
		}
	case *examplev1.ExampleMachineList:
		for _, m := range a.machines {
			list.Items = append(list.Items, *m)
		}
	}
	return nil
}

// state is a copy of all that the API server has, without the version of its next write.
func (a *memoryAPI) state() *memoryAPI {
	s := &memoryAPI{
		clusters: map[string]*clusterv1.Cluster{},
		machines: maps.Clone(a.machines),
		record:   a.record.DeepCopy(),
		fails:    a.fails,
		lose:     a.lose,
	}
	for name, c := range a.clusters {
		s.clusters[name] = c.DeepCopy()
	}
	return s
}
