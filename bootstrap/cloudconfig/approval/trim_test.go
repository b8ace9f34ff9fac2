package approval

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// What the cache has left out of a request is not lost in the target cluster when the request is approved.
func TestAnApprovalChangesNothingElseOfARequest(t *testing.T) {
	f := newFixture(t, "trimmed")
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:bootstrap:abcdef",
		Groups:   []string{f.names.JoinGroup(), "system:masters"},
		Extra:    map[string][]string{"example.com/k": {"v"}},
	}
	kubelet, err := client.New(config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	csr := firstRequest(t)
	csr.ObjectMeta, csr.Spec.Username, csr.Spec.Groups = metav1.ObjectMeta{Name: "trimmed-1"}, "", nil
	f.Expect(kubelet.Create(t.Context(), csr)).To(Succeed())
	f.Expect(csr.Spec.Extra).NotTo(BeEmpty())

	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.remote = interceptor.NewClient(admin, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			_, err := trim(obj)
			return err
		},
	})
	f.Expect(f.reconcile("trimmed-1")).To(Succeed())
	f.Expect(f.approved("trimmed-1")).To(BeTrue())
	after := &certificatesv1.CertificateSigningRequest{}
	f.Expect(f.as("", nil).Get(t.Context(), client.ObjectKeyFromObject(csr), after)).To(Succeed())
	f.Expect(after.Spec).To(Equal(csr.Spec))
}
