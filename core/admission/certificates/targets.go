package certificates

import (
	"context"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// Annotation marks the objects into which the trusted authorities are written: webhook configurations and CRDs that
// are converted by webhook. Its value is the name of the Secret in the core's own namespace, whatever that is, as long as
// the Service that the object names is there as well: of two cores in one cluster each has its own objects. A value with a
// namespace before it, as in namespace/name, says nothing of the Service. Without the annotation an object is left alone:
// its authorities come from elsewhere, for example from cert-manager.
const Annotation = "webhooks.millwright.dev/trust-from"

// configurationKinds are the kinds of webhook configurations.
var configurationKinds = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// target is an object by which API servers find the webhooks.
type target struct {
	kind, name string
	generation int64
	// beside is the namespace that the Service of the object must be in; any if empty.
	beside string
}

// marks reports whether the value of the annotation names the Secret, and the namespace of the Service if that must be the Secret's.
func (s *Settings) marks(value string) (marked bool, beside string) {
	switch value {
	case s.Secret.String():
		return true, ""
	case s.Secret.Name:
		return true, s.Secret.Namespace
	}
	return false, ""
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	if kind == version.CRDKind.Kind {
		object.SetGroupVersionKind(version.CRDKind)
	} else {
		object.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	}
	return object
}

// find lists the targets that exist and are marked.
func (s *Settings) find(ctx context.Context, configurations, crds client.Reader) ([]target, error) {
	var found []target
	look := func(reader client.Reader, kind, name string) error {
		object := metadata(kind)
		err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return errors.Wrapf(err, "reading metadata of %s %s", kind, name)
		}
		if marked, beside := s.marks(object.Annotations[Annotation]); marked {
			found = append(found, target{kind, name, object.Generation, beside})
		}
		return nil
	}
	for _, kind := range configurationKinds {
		if err := look(configurations, kind, s.Configuration); err != nil {
			return nil, err
		}
	}
	for _, name := range s.CRDs {
		if err := look(crds, version.CRDKind.Kind, name); err != nil {
			return nil, err
		}
	}
	return found, nil
}
