package standin

import (
	"context"
	stderrors "errors"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// Guard makes the API server refuse changes of templates of a kind by Policy, in a namespace or, without one, in all, and returns when
// it does. undo reverts that.
func Guard(ctx context.Context, c client.Client, namespace, kind string, switches Switches) (undo func(), err error) {
	var created []client.Object
	undo = func() {
		for _, object := range created {
			_ = c.Delete(context.WithoutCancel(ctx), object)
		}
	}
	policy := Policy(namespace, kind, switches)
	for _, object := range policy {
		if err := c.Create(ctx, object); err != nil {
			return undo, errors.Wrap(err, "creating the policy of templates")
		}
		created = append(created, object)
	}
	if len(policy) == 0 {
		return undo, nil
	}
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{}}}}
	template.SetGroupVersionKind(VersionOf(version.V1Beta2).WithKind(kind))
	template.SetNamespace(namespace)
	if namespace == "" {
		template.SetNamespace("default")
	}
	template.SetName("guarded-" + rand.String(5))
	if err := c.Create(ctx, template); err != nil {
		return undo, errors.Wrap(err, "creating a template")
	}
	return undo, stderrors.Join(guarded(ctx, c, template), c.Delete(ctx, template))
}

// guarded waits until a change of the template is refused: the API server needs a moment to apply a new policy.
func guarded(ctx context.Context, c client.Client, template *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		changed := template.DeepCopy()
		changed.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "other"}}}
		if err := c.Update(ctx, changed, client.DryRunAll); err != nil {
			return errors.Wrap(ctx.Err(), "waiting for the policy of templates")
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "waiting for the policy of templates")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
