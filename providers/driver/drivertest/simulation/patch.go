package simulation

import (
	"encoding/json"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// patch does what the API server does with a merge patch of an object or its status, and returns what it answers.
func (s *Server[M]) patch(obj client.Object, patch client.Patch, status bool) error {
	id := IDOf(obj)
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	s.w.Lock()
	defer s.w.Unlock()
	stored, ok := s.objects[id]
	if !ok {
		return apierrors.NewNotFound(id.resource(), id.Name)
	}
	var lock struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return err
	}
	if v := lock.Metadata.ResourceVersion; v != "" && v != stored.GetResourceVersion() {
		return apierrors.NewConflict(id.resource(), id.Name, errors.New("the object has been modified"))
	}
	desired, err := merged(stored, data)
	if err != nil {
		return err
	}
	result := join(stored, desired, status)
	if err := validate[M](stored, result); err != nil {
		return apierrors.NewInvalid(schema.GroupKind{Kind: id.Kind}, id.Name,
			field.ErrorList{field.Forbidden(field.NewPath("spec"), err.Error())})
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
	desired := reflect.New(reflect.TypeOf(stored).Elem()).Interface().(client.Object)
	return desired, json.Unmarshal(after, desired)
}

// join takes the status from one of both and the rest from the other, but for what only the server sets.
func join(stored, desired client.Object, status bool) client.Object {
	from, to := stored, desired
	if status {
		from, to = desired, copyOf(stored)
	}
	if field := part(to, "Status"); field.IsValid() {
		field.Set(part(copyOf(from), "Status"))
	}
	if spec := part(to, "Spec"); spec.IsValid() && !equality.Semantic.DeepEqual(spec.Interface(), part(stored, "Spec").Interface()) {
		to.SetGeneration(stored.GetGeneration() + 1)
	}
	to.SetUID(stored.GetUID())
	to.SetResourceVersion(stored.GetResourceVersion())
	to.SetCreationTimestamp(stored.GetCreationTimestamp())
	to.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	return to
}

// part is the spec or the status of an object.
func part(obj client.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// validate is the validation of the kind's CRD as far as the kit could run against it, and that no finalizer is added to what is being
// deleted.
func validate[M driver.Object](before, after client.Object) error {
	if !before.GetDeletionTimestamp().IsZero() {
		for _, f := range after.GetFinalizers() {
			if !slices.Contains(before.GetFinalizers(), f) {
				return errors.New("no new finalizers can be added if the object is being deleted")
			}
		}
	}
	was, ok := before.(M)
	if !ok {
		return nil
	}
	is, _ := after.(M)
	status, known, sets := is.CommonStatus(), was.CommonSpec().ProviderID, is.CommonSpec().ProviderID
	ended := status.InstanceState == driverv1.InstanceTerminated || status.InstanceState == driverv1.InstanceFailed
	switch {
	case known == "" || known == sets:
	case sets != "":
		return errors.New("providerID is immutable once set")
	case status.Ready || !ended:
		return errors.New("spec.providerID cannot be removed, unless the instance has ended before it ran")
	}
	for _, c := range status.Conditions {
		if c.Reason == "" || len(c.Message) > 32768 {
			return errors.Errorf("condition %s has no reason, or a message that is too long", c.Type)
		}
	}
	return nil
}
