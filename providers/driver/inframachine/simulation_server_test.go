package inframachine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// simServer is the API server of one management cluster, in memory, with one namespace. It does to objects what the real one does with merge
// patches, optimistic locks, finalizers and the validation that matters here, and keeps all versions, so that caches can lag.
type simServer struct {
	w        *simWorld
	name     string
	objects  map[simID]client.Object
	versions map[simID][]simVersion
	latest   int
}

// simID is what an object is found by.
type simID struct{ kind, name string }

// simVersion is an object as it was from a time on; nil if it was gone.
type simVersion struct {
	at  time.Time
	obj client.Object
}

func newSimServer(w *simWorld, name string) *simServer {
	return &simServer{w: w, name: name, objects: map[simID]client.Object{}, versions: map[simID][]simVersion{}}
}

func simIDOf(obj client.Object) simID {
	switch obj.(type) {
	case *examplev1.ExampleMachine:
		return simID{"ExampleMachine", obj.GetName()}
	case *clusterv1.Machine:
		return simID{"Machine", obj.GetName()}
	case *clusterv1.Cluster:
		return simID{"Cluster", obj.GetName()}
	case *corev1.Secret:
		return simID{"Secret", obj.GetName()}
	}
	panic(fmt.Sprintf("there are no objects of %T", obj))
}

func (id simID) resource() schema.GroupResource { return schema.GroupResource{Resource: id.kind} }

// copyInto makes into the same as from.
func copyInto(from, into client.Object) {
	switch into := into.(type) {
	case *examplev1.ExampleMachine:
		from.(*examplev1.ExampleMachine).DeepCopyInto(into)
	case *clusterv1.Machine:
		from.(*clusterv1.Machine).DeepCopyInto(into)
	case *clusterv1.Cluster:
		from.(*clusterv1.Cluster).DeepCopyInto(into)
	case *corev1.Secret:
		from.(*corev1.Secret).DeepCopyInto(into)
	}
}

func copyOf[O client.Object](obj O) O { return obj.DeepCopyObject().(O) }

// create adds an object as kubectl does.
func (s *simServer) create(obj client.Object) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	obj.SetUID(types.UID(fmt.Sprintf("uid-%s-%d", strings.ToLower(s.name), s.latest+1)))
	obj.SetCreationTimestamp(metav1.Now())
	obj.SetGeneration(1)
	s.commit(simIDOf(obj), copyOf(obj))
}

// get returns the present version; nil if there is none.
func (s *simServer) get(id simID) client.Object {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if obj, ok := s.objects[id]; ok {
		return copyOf(obj)
	}
	return nil
}

// machine returns the object of the life; nil if there is none.
func (s *simServer) machine() *examplev1.ExampleMachine {
	obj, _ := s.get(simID{"ExampleMachine", simName}).(*examplev1.ExampleMachine)
	return obj
}

// change changes an object as kubectl edit does.
func (s *simServer) change(id simID, change func(client.Object)) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if obj, ok := s.objects[id]; ok {
		obj = copyOf(obj)
		change(obj)
		s.commit(id, obj)
	}
}

// delete removes an object, or has its finalizers removed first.
func (s *simServer) delete(id simID) {
	s.change(id, func(obj client.Object) {
		if obj.GetDeletionTimestamp().IsZero() {
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now().Truncate(time.Second)})
		}
	})
}

// commit makes obj the present version, removes it if nothing holds it any more, and has the caches learn of it. w.mu is held.
func (s *simServer) commit(id simID, obj client.Object) {
	before := s.objects[id]
	s.latest++
	if !obj.GetDeletionTimestamp().IsZero() && len(obj.GetFinalizers()) == 0 {
		s.remove(id)
		return
	}
	obj.SetResourceVersion(strconv.Itoa(s.latest))
	s.objects[id] = obj
	s.versions[id] = append(s.versions[id], simVersion{time.Now(), obj})
	s.w.committed(s, id, before, obj)
}

// remove ends an object. w.mu is held.
func (s *simServer) remove(id simID) {
	before := s.objects[id]
	s.latest++
	delete(s.objects, id)
	s.versions[id] = append(s.versions[id], simVersion{time.Now(), nil})
	s.w.committed(s, id, before, nil)
}

// patch does what the API server does with a merge patch of an object or its status, and returns what it answers.
func (s *simServer) patch(obj client.Object, patch client.Patch, status bool) error {
	id := simIDOf(obj)
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	stored, ok := s.objects[id]
	if !ok {
		return apierrors.NewNotFound(id.resource(), id.name)
	}
	var lock struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return err
	}
	if v := lock.Metadata.ResourceVersion; v != "" && v != stored.GetResourceVersion() {
		return apierrors.NewConflict(id.resource(), id.name, errors.New("the object has been modified"))
	}
	desired, err := merged(stored, data)
	if err != nil {
		return err
	}
	result := join(stored, desired, status)
	if err := validate(stored, result); err != nil {
		return apierrors.NewInvalid(schema.GroupKind{Kind: id.kind}, id.name, field.ErrorList{field.Forbidden(field.NewPath("spec"), err.Error())})
	}
	if !equality.Semantic.DeepEqual(stored, result) {
		s.commit(id, result)
	}
	copyInto(result, obj)
	return nil
}

// merged returns the object with a merge patch applied.
func merged(stored client.Object, patch []byte) (client.Object, error) {
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, err
	}
	var desired client.Object = &examplev1.ExampleMachine{}
	if _, ok := stored.(*clusterv1.Machine); ok {
		desired = &clusterv1.Machine{}
	}
	return desired, json.Unmarshal(after, desired)
}

// join takes the status from one of both and the rest from the other, but for what only the server sets.
func join(stored, desired client.Object, status bool) client.Object {
	from, to := stored, desired
	if status {
		from, to = desired, copyOf(stored)
	}
	if to, ok := to.(*examplev1.ExampleMachine); ok {
		to.Status = *from.(*examplev1.ExampleMachine).Status.DeepCopy()
		if !equality.Semantic.DeepEqual(to.Spec, stored.(*examplev1.ExampleMachine).Spec) {
			to.Generation++
		}
	}
	to.SetUID(stored.GetUID())
	to.SetResourceVersion(stored.GetResourceVersion())
	to.SetCreationTimestamp(stored.GetCreationTimestamp())
	to.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	return to
}

// validate is the validation of the kind's CRD as far as the kit could run against it, and that no finalizer is added to what is being deleted.
func validate(before, after client.Object) error {
	if !before.GetDeletionTimestamp().IsZero() {
		for _, f := range after.GetFinalizers() {
			if !slices.Contains(before.GetFinalizers(), f) {
				return errors.New("no new finalizers can be added if the object is being deleted")
			}
		}
	}
	was, ok := before.(*examplev1.ExampleMachine)
	if !ok {
		return nil
	}
	is := after.(*examplev1.ExampleMachine)
	ended := is.Status.InstanceState == driverv1.InstanceTerminated || is.Status.InstanceState == driverv1.InstanceFailed
	switch {
	case was.Spec.ProviderID == "" || was.Spec.ProviderID == is.Spec.ProviderID:
	case is.Spec.ProviderID != "":
		return errors.New("providerID is immutable once set")
	case is.Status.Ready || !ended:
		return errors.New("spec.providerID cannot be removed, unless the instance has ended before it ran")
	}
	for _, c := range is.Status.Conditions {
		if c.Reason == "" || len(c.Message) > 32768 {
			return errors.Errorf("condition %s has no reason, or a message that is too long", c.Type)
		}
	}
	return nil
}
