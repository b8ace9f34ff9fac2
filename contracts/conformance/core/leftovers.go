package core

import (
	"context"
	"time"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
)

// leftovers removes the admission policies of runs that were killed: they are cluster-wide, and would stay when their namespace is deleted.
// A policy that is young may be of a run that works beside this one; no case needs it for as long as ten reactions of a core.
func leftovers(ctx context.Context, env *Env) error {
	before := time.Now().Add(-10 * env.Timeouts.React.Duration)
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		if err := env.Client.List(ctx, list, client.HasLabels{behaviour.LabelRun}); err != nil {
			return errors.Wrap(err, "looking for admission policies of earlier runs")
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, is := item.(client.Object)
			if !is || !object.GetCreationTimestamp().Time.Before(before) {
				return nil
			}
			return errors.Wrap(client.IgnoreNotFound(env.Client.Delete(ctx, object)), "removing what an earlier run has left")
		})
		if err != nil {
			return err
		}
	}
	return nil
}
