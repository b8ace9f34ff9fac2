package external

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

// definitionTimeout bounds one attempt to read a definition.
const definitionTimeout = 10 * time.Second

// unserved is a definition that does not serve the version that its label names.
type unserved struct {
	of  version.Resolved
	err error
}

// errorFor is the error for a definition as it was when that was found out; nil for any other.
func (u unserved) errorFor(resolved version.Resolved) error {
	if u.of == resolved {
		return u.err
	}
	return nil
}

// served finds out whether a definition serves the version that its label names, and returns *version.NotServedError if it does not. The
// watch of a version that is not served lists without success, and requests for its objects are answered as if there were none.
func (i *Informers) served(ctx context.Context, resolved version.Resolved) error {
	gk := resolved.GVK.GroupKind()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(version.CRDKind)
	name := version.CRDName(gk)
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	if err := i.apiReader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return errors.Wrapf(err, "reading CustomResourceDefinition %s", name)
	}
	serves := servedBy(crd)
	if slices.Contains(serves, resolved.GVK.Version) {
		return nil
	}
	return &version.NotServedError{
		GroupKind: gk, CRD: name, Label: version.Label(resolved.Contract), Version: resolved.GVK.Version, Served: serves,
	}
}

// servedBy are the versions that a definition serves, in its order.
func servedBy(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, field.Path{"spec", "versions"}...)
	var names []string
	for _, v := range versions {
		described, _ := v.(map[string]any)
		if served, _ := described["served"].(bool); !served {
			continue
		}
		if name, _ := described["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// NotServed reports whether the error means that the definition of a kind does not serve the version that its label names: its objects
// may exist and cannot be read.
func NotServed(err error) bool {
	var notServed *version.NotServedError
	return errors.As(err, &notServed)
}

// Gone reports whether the answer to a request means that there is no such object. An API server answers in the same way for a version
// of a kind that it does not serve, whatever objects there are.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
