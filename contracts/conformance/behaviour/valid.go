package behaviour

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// validSample validates the provider's object by a dry run, so that a wrong field is reported once, before the cases, and
// not as the reason why each of them is skipped.
func (e *Env) validSample(ctx context.Context, kinds []version.Resolved) error {
	for _, kind := range kinds {
		document, err := e.Sample.Subject.MarshalJSON()
		if err != nil {
			return errors.Wrap(err, "reading the object of the sample")
		}
		object, err := decode(filled(string(document), e.name(), e.Namespace, "marker"))
		if err != nil {
			return errors.Wrap(err, "reading the object of the sample")
		}
		subject := &unstructured.Unstructured{Object: map[string]any{}}
		if spec, found := object.Object["spec"]; found {
			subject.Object["spec"] = spec
		}
		subject.SetGroupVersionKind(kind.GVK)
		subject.SetNamespace(e.Namespace)
		subject.SetName(e.name())
		options := []client.CreateOption{client.DryRunAll}
		if kind.GVK == e.Sample.Subject.GroupVersionKind() {
			// Other versions of the API may not have all fields of the sample.
			options = append(options, client.FieldValidation(metav1.FieldValidationStrict))
		}
		err = e.Client.Create(ctx, subject, options...)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return errors.Wrapf(err, "the %s of the sample is not valid in %s", kind.GVK.Kind, kind.GVK.GroupVersion())
		}
	}
	return nil
}
