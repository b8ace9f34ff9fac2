package inframachine

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeStatus concludes the status and writes it, in one patch and only if it changed. Events and
// metrics follow what has been written.
func (r *Reconciler[M]) writeStatus(ctx context.Context, s *scope[M]) error {
	if s.released || s.facts.unsettled {
		r.publish(s)
		return nil
	}
	base, ok := s.obj.DeepCopyObject().(M)
	if !ok {
		return errors.Errorf("%s is not copied to its own type", r.Kind)
	}
	status := s.obj.CommonStatus()
	now := metav1.NewTime(s.now)
	conclude(status, s.facts, s.obj.GetGeneration(), now)
	concludeReachable(base.CommonStatus(), status, s.facts, s.view, s.obj.GetGeneration(), now)
	if !equality.Semantic.DeepEqual(base.CommonStatus(), status) {
		if err := r.Client.Status().Patch(ctx, s.obj, client.MergeFrom(base)); err != nil {
			return errors.Wrapf(client.IgnoreNotFound(err), "writing the status of %s %s", r.Kind, s.key)
		}
	}
	r.measure(s, base.CommonStatus())
	r.publish(s)
	return nil
}
