// Package refuse simulates an API server that refuses writes, without a policy: a client that answers as one does.
package refuse

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Because is the message of each refused write.
const Because = "admission policy: frozen until Monday"

// Patches refuses patches of objects, not of their status, until it is lifted.
type Patches struct {
	mu     sync.Mutex
	of     func(client.Object) bool
	having string
}

// Begin refuses patches of such objects that contain the text.
func (p *Patches) Begin(of func(client.Object) bool, having string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.having = of, having
}

// Lift ends it.
func (p *Patches) Lift() { p.Begin(nil, "") }

// Wrap returns a client that refuses, and otherwise behaves as the inner one.
func (p *Patches) Wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			data, err := patch.Data(obj)
			if err == nil && p.refuses(obj, string(data)) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, obj.GetName(), errors.New(Because))
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
}

func (p *Patches) refuses(obj client.Object, data string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of != nil && p.of(obj) && strings.Contains(data, p.having)
}
