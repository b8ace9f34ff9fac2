package core

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An API server that does not answer for a moment has said nothing of an object: it is neither deleted nor gone.
func TestReadsThatFailAreNoAnswer(t *testing.T) {
	failures := 0
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"}}
	c := fake.NewClientBuilder().WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if failures > 0 {
				failures--
				return apierrors.NewInternalError(context.DeadlineExceeded)
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	w := &world{Env: &Env{Client: c}, ctx: t.Context(), id: "c"}
	w.Timeouts.React.Duration, w.Timeouts.Poll.Duration = time.Minute, time.Millisecond
	missing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "missing"}}
	for name, test := range map[string]struct {
		says string
		want bool
	}{
		"staying":                         {says: func() string { failures = 2; return w.staying(there) }(), want: false},
		"deleted":                         {says: func() string { failures = 2; return w.deleted(there) }(), want: true},
		"gone":                            {says: func() string { failures = 2; return w.gone(there) }(), want: true},
		"of one that is missing, staying": {says: func() string { failures = 2; return w.staying(missing) }(), want: true},
		"of one that is missing, deleted": {says: func() string { failures = 2; return w.deleted(missing) }(), want: false},
		"of one that is missing, gone":    {says: func() string { failures = 2; return w.gone(missing) }(), want: false},
	} {
		if (test.says != "") != test.want || failures != 0 {
			t.Errorf("%s says %q; %d failures were not asked for", name, test.says, failures)
		}
	}
}
