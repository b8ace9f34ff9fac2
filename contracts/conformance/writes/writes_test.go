package writes_test

import (
	"context"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/conformance/writes"
)

// sent looks at the context with which a write is sent, after the run was interrupted.
type sent struct {
	interrupt context.CancelFunc
	count     int
	failed    error
}

func (s *sent) look(ctx context.Context) error {
	s.interrupt()
	s.count++
	if err := ctx.Err(); err != nil {
		s.failed = err
	}
	return ctx.Err()
}

// inner is a client all of whose writes are looked at.
func inner(s *sent) client.WithWatch {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			return s.look(ctx)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			return s.look(ctx)
		},
		DeleteAllOf: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteAllOfOption) error {
			return s.look(ctx)
		},
		Update: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			return s.look(ctx)
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return s.look(ctx)
		},
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return s.look(ctx)
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
			return s.look(ctx)
		},
		SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
			return s.look(ctx)
		},
		SubResourcePatch: func(
			ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			return s.look(ctx)
		},
		SubResourceApply: func(
			ctx context.Context, _ client.Client, _ string, _ runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption,
		) error {
			return s.look(ctx)
		},
	})
}

// Each kind of write goes on to its end when the run is interrupted while it is on its way, and is not begun after that.
func TestWritesAreFinished(t *testing.T) {
	pod, none := &corev1.Pod{}, client.RawPatch("", nil)
	calls := map[string]func(context.Context, client.Client) error{
		"Create":      func(ctx context.Context, c client.Client) error { return c.Create(ctx, pod) },
		"Delete":      func(ctx context.Context, c client.Client) error { return c.Delete(ctx, pod) },
		"DeleteAllOf": func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, pod) },
		"Update":      func(ctx context.Context, c client.Client) error { return c.Update(ctx, pod) },
		"Patch":       func(ctx context.Context, c client.Client) error { return c.Patch(ctx, pod, none) },
		"Apply":       func(ctx context.Context, c client.Client) error { return c.Apply(ctx, applycorev1.Pod("a", "b")) },
	}
	status := map[string]func(context.Context, client.Client) error{
		"Create": func(ctx context.Context, c client.Client) error { return c.Status().Create(ctx, pod, pod) },
		"Update": func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, pod) },
		"Patch":  func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, pod, none) },
		"Apply": func(ctx context.Context, c client.Client) error {
			return c.Status().Apply(ctx, applycorev1.Pod("a", "b"))
		},
	}
	covers[client.Writer](t, calls)
	covers[client.SubResourceWriter](t, status)
	for _, some := range []map[string]func(context.Context, client.Client) error{calls, status} {
		for name, call := range some {
			ctx, cancel := context.WithCancel(t.Context())
			s := &sent{interrupt: cancel}
			c := writes.Finished(inner(s))
			if err := call(ctx, c); err != nil || s.failed != nil || s.count != 1 {
				t.Errorf("%s on its way: %v, sent %d times with %v", name, err, s.count, s.failed)
			}
			if err := call(ctx, c); err == nil || s.count != 1 {
				t.Errorf("%s after the interruption: %v, sent %d times", name, err, s.count)
			}
		}
	}
}

// covers fails if a method of an interface is missing: a new kind of write would be given up.
func covers[Interface any](t *testing.T, calls map[string]func(context.Context, client.Client) error) {
	t.Helper()
	all := reflect.TypeFor[Interface]()
	for i := range all.NumMethod() {
		if calls[all.Method(i).Name] == nil {
			t.Errorf("%s is not looked at", all.Method(i).Name)
		}
	}
}
