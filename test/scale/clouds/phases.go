package clouds

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// launch creates all Machines and ends when all run. What a core writes of a Machine that runs is written as soon as it does.
func (l *life) launch(ctx context.Context) error {
	if err := forEach(l.options.N, func(name string) error { return l.create(ctx, name) }); err != nil {
		return err
	}
	adopted := sets.New[string]()
	return l.await(ctx, "Machines run", func(all map[string]*unstructured.Unstructured) (int, error) {
		for name, infra := range all {
			if adopted.Has(name) || !running(infra) {
				continue
			}
			if err := l.adopt(ctx, infra); err != nil {
				return 0, err
			}
			adopted.Insert(name)
		}
		return adopted.Len(), nil
	})
}

// idle lets time pass.
func (l *life) idle(ctx context.Context) error {
	for end := time.Now().Add(l.options.Idle); time.Now().Before(end); {
		if err := l.pause(ctx, min(time.Second, time.Until(end))); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes all Machines at once and ends when all infrastructure machines are gone.
func (l *life) delete(ctx context.Context) error {
	if err := forEach(l.options.N, func(name string) error { return l.remove(ctx, name) }); err != nil {
		return err
	}
	released := sets.New[string]()
	return l.await(ctx, "Machines are gone", func(all map[string]*unstructured.Unstructured) (int, error) {
		for i := range l.options.N {
			name := machineName(i)
			if all[name] != nil || released.Has(name) {
				continue
			}
			if err := l.release(ctx, name); err != nil {
				return 0, err
			}
			released.Insert(name)
		}
		return released.Len(), nil
	})
}

// await checks the infrastructure machines until all N are done, and otherwise shows one that is not.
func (l *life) await(ctx context.Context, what string, done func(map[string]*unstructured.Unstructured) (int, error)) error {
	limit := time.Now().Add(l.options.PhaseTimeout)
	for {
		all, err := l.list(ctx)
		if err != nil {
			return err
		}
		n, err := done(all)
		if err != nil || n == l.options.N {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%d of %d %s after %s; %s", n, l.options.N, what, l.options.PhaseTimeout, example(all))
		}
		if err := l.pause(ctx, look); err != nil {
			return err
		}
	}
}

// example shows the status of an infrastructure machine that does not run, or of any.
func example(all map[string]*unstructured.Unstructured) string {
	text := "there are none"
	for name, infra := range all {
		text = fmt.Sprintf("%s has status %v", name, infra.Object["status"])
		if !running(infra) {
			break
		}
	}
	return text
}

// leftovers are what is still in the account.
func (l *life) leftovers() map[string]int {
	left := map[string]int{}
	for _, i := range l.account.Instances() {
		if i.Live() {
			left["instances"]++
		}
	}
	if n := len(l.account.Volumes()); n > 0 {
		left["volumes"] = n
	}
	if n := len(l.account.NetworkInterfaces()); n > 0 {
		left["network interfaces"] = n
	}
	return left
}
