package lifecycle

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

const (
	// podsPerNode are there when the Machines are deleted, and may be evicted.
	podsPerNode = 3
	// parallel is how many requests of the harness itself are under way at a time.
	parallel = 8
)

// placePods gives each Node of a Machine its Pods, running. A Node without a Machine, which a core may
// have left behind, gets none.
func placePods(ctx context.Context, l *life) error {
	return inParallel(ctx, l.view.machineNames(), func(ctx context.Context, node string) error {
		for i := range podsPerNode {
			p := pod(node, i)
			if err := l.providers.Client().Create(ctx, p); err != nil {
				return errors.Wrapf(err, "creating a Pod on Node %s", node)
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := l.providers.Client().Status().Update(ctx, p); err != nil {
				return errors.Wrapf(err, "running a Pod on Node %s", node)
			}
		}
		return nil
	})
}

// inParallel does the same for each name, some at a time, and stops at the first failure.
func inParallel(ctx context.Context, names []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, name := range names {
		group.Go(func() error {
			if err := do(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
