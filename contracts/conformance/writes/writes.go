// Package writes has a client for suites that may be interrupted at any moment. A canceled request may have reached the API server
// and take effect, perhaps after the run has cleaned up.
package writes

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Limit bounds a write. It is longer than the minute after which an API server by default times a request out itself.
const Limit = 70 * time.Second

// Finish runs a write that must not be interrupted: not at all if the context has ended, else to its end, even if
// the context ends first, for at most the limit.
func Finish(ctx context.Context, limit time.Duration, write func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return write(ctx)
}

// Finished returns a client that waits for the response to each write that it has sent, also when the context ends first. Reads
// and watches end with their context.
func Finished(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.Delete(ctx, object, options...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.DeleteAllOf(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.Patch(ctx, object, patch, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return Finish(ctx, Limit, func(ctx context.Context) error { return c.Apply(ctx, object, options...) })
		},
		SubResource: func(c client.WithWatch, name string) client.SubResourceClient { return part{c.SubResource(name)} },
	})
}

// part is a client of a subresource.
type part struct{ client.SubResourceClient }

// Create waits for its response.
func (p part) Create(ctx context.Context, object, sub client.Object, options ...client.SubResourceCreateOption) error {
	return Finish(ctx, Limit, func(ctx context.Context) error { return p.SubResourceClient.Create(ctx, object, sub, options...) })
}

// Update waits for its response.
func (p part) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	return Finish(ctx, Limit, func(ctx context.Context) error { return p.SubResourceClient.Update(ctx, object, options...) })
}

// Patch waits for its response.
func (p part) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return Finish(ctx, Limit, func(ctx context.Context) error { return p.SubResourceClient.Patch(ctx, object, patch, options...) })
}

// Apply waits for its response.
func (p part) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	return Finish(ctx, Limit, func(ctx context.Context) error { return p.SubResourceClient.Apply(ctx, object, options...) })
}
