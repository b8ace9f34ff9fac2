package simulation

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// Server is the API server of one management cluster, in memory, with one namespace. It does to objects what the real one does with merge
// patches, optimistic locks, finalizers and the validation that matters to the kit, and keeps all versions, so that caches can lag.
type Server[M driver.Object] struct {
	// Name of the server in the history.
	Name string

	w        *World[M]
	objects  map[ID]client.Object
	versions map[ID][]version
	latest   int
}

// ID is what an object is found by.
type ID struct{ Kind, Name string }

// IDOf returns the ID of an object. Its kind is the name of its type.
func IDOf(obj client.Object) ID {
	return ID{reflect.TypeOf(obj).Elem().Name(), obj.GetName()}
}

func (id ID) resource() schema.GroupResource { return schema.GroupResource{Resource: id.Kind} }

// version is an object as it was from a time on; nil if it was gone.
type version struct {
	at  time.Time
	obj client.Object
}

// NewServer adds an API server to the world. The versions of its objects begin after a number.
func (w *World[M]) NewServer(name string, after int) *Server[M] {
	return &Server[M]{w: w, Name: name, objects: map[ID]client.Object{}, versions: map[ID][]version{}, latest: after}
}

// copyInto makes into the same as from.
func copyInto(from, into client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

func copyOf[O client.Object](obj O) O { return obj.DeepCopyObject().(O) }

// Create adds an object as kubectl does.
func (s *Server[M]) Create(obj client.Object) {
	s.w.Lock()
	defer s.w.Unlock()
	s.add(obj)
}

// add adds an object, which gets what the server sets. The world's lock is held.
func (s *Server[M]) add(obj client.Object) {
	obj.SetUID(types.UID(fmt.Sprintf("uid-%s-%d", strings.ToLower(s.Name), s.latest+1)))
	obj.SetCreationTimestamp(metav1.Now())
	obj.SetGeneration(1)
	s.commit(IDOf(obj), copyOf(obj))
	obj.SetResourceVersion(strconv.Itoa(s.latest))
}

// Get returns the present version; nil if there is none.
func (s *Server[M]) Get(id ID) client.Object {
	s.w.Lock()
	defer s.w.Unlock()
	if obj, ok := s.objects[id]; ok {
		return copyOf(obj)
	}
	return nil
}

// Stored returns the present version, which is not to be changed; nil if there is none. The world's lock is held.
func (s *Server[M]) Stored(id ID) client.Object { return s.objects[id] }

// Machine returns an object of the kind under test; nil if there is none.
func (s *Server[M]) Machine(name string) M {
	obj, _ := s.Get(ID{s.w.Kind.Name, name}).(M)
	return obj
}

// Change changes an object as kubectl edit does.
func (s *Server[M]) Change(id ID, change func(client.Object)) {
	s.w.Lock()
	defer s.w.Unlock()
	if obj, ok := s.objects[id]; ok {
		obj = copyOf(obj)
		change(obj)
		s.commit(id, obj)
	}
}

// end is Delete as a client asks for it.
func (s *Server[M]) end(obj client.Object, is *metav1.Preconditions) error {
	id := IDOf(obj)
	found := s.Get(id)
	switch {
	case found == nil:
		return apierrors.NewNotFound(id.resource(), id.Name)
	case is != nil && (ptr.Deref(is.UID, found.GetUID()) != found.GetUID() ||
		ptr.Deref(is.ResourceVersion, found.GetResourceVersion()) != found.GetResourceVersion()):
		return apierrors.NewConflict(id.resource(), id.Name, errors.New("it is another version"))
	}
	s.Delete(id)
	return nil
}

// Delete removes an object, or has its finalizers removed first.
func (s *Server[M]) Delete(id ID) {
	s.Change(id, func(obj client.Object) {
		if obj.GetDeletionTimestamp().IsZero() {
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now().Truncate(time.Second)})
		}
	})
}

// Clear removes all objects, whatever holds them.
func (s *Server[M]) Clear() {
	s.w.Lock()
	defer s.w.Unlock()
	for id := range s.objects {
		s.remove(id)
	}
}

// commit makes obj the present version, removes it if nothing holds it any more, and has the caches learn of it. The world's lock is
// held.
func (s *Server[M]) commit(id ID, obj client.Object) {
	before := s.objects[id]
	s.latest++
	if !obj.GetDeletionTimestamp().IsZero() && len(obj.GetFinalizers()) == 0 {
		s.remove(id)
		return
	}
	obj.SetResourceVersion(strconv.Itoa(s.latest))
	s.objects[id] = obj
	s.versions[id] = append(s.versions[id], version{time.Now(), obj})
	s.w.committed(s, id, before, obj)
}

// remove ends an object. The world's lock is held.
func (s *Server[M]) remove(id ID) {
	before := s.objects[id]
	s.latest++
	delete(s.objects, id)
	s.versions[id] = append(s.versions[id], version{time.Now(), nil})
	s.w.committed(s, id, before, nil)
}

// insert does what the API server does with a POST.
func (s *Server[M]) insert(obj client.Object) error {
	s.w.Lock()
	defer s.w.Unlock()
	if id := IDOf(obj); s.objects[id] != nil {
		return apierrors.NewAlreadyExists(id.resource(), id.Name)
	}
	s.add(obj)
	return nil
}

// replace does what the API server does with a PUT.
func (s *Server[M]) replace(obj client.Object) error {
	id := IDOf(obj)
	s.w.Lock()
	defer s.w.Unlock()
	stored, ok := s.objects[id]
	if !ok {
		return apierrors.NewNotFound(id.resource(), id.Name)
	}
	if obj.GetResourceVersion() != stored.GetResourceVersion() {
		return apierrors.NewConflict(id.resource(), id.Name, errors.New("the object has been modified"))
	}
	s.commit(id, copyOf(obj))
	obj.SetResourceVersion(strconv.Itoa(s.latest))
	return nil
}
