package machinetemplate

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/identitytest"
)

// tenantTemplate names its identity by a label.
type tenantTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            driverv1.MachineTemplateStatus `json:"status,omitempty"`
}

func (m *tenantTemplate) CommonStatus() *driverv1.MachineTemplateStatus { return &m.Status }
func (m *tenantTemplate) IdentityName() string                          { return m.Labels["identity"] }

func (m *tenantTemplate) DeepCopyObject() runtime.Object {
	c := &tenantTemplate{TypeMeta: m.TypeMeta}
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	m.Status.DeepCopyInto(&c.Status)
	return c
}

// sizer counts its calls.
type sizer struct{ calls int }

func (s *sizer) Size(context.Context, *tenantTemplate) (Size, error) {
	s.calls++
	return Size{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}, nil
}

func TestTheCloudIsNotAskedAboutATemplateThatMayNotUseItsIdentity(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("TenantTemplate"), &tenantTemplate{})
	g.Expect(identitytest.AddToScheme(scheme)).To(Succeed())
	template := &tenantTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "u", Labels: map[string]string{"identity": "id"}},
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(template).WithStatusSubresource(template).Build()
	cloud := &sizer{}
	r := &Reconciler[*tenantTemplate]{
		Client: server, Sizer: cloud, Clock: clocktesting.NewFakePassiveClock(time.Now()), Kind: "TenantTemplate", CallTimeout: time.Minute,
		New:        func() *tenantTemplate { return &tenantTemplate{} },
		Identities: &identity.Guard{Reader: server, Kind: identitytest.Kind, New: func() identity.Object { return &identitytest.Identity{} }},
	}
	reconciled := func() string {
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeZero(), "watches bring it back")
		g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
		g.Expect(template.Status.Conditions).To(HaveLen(1))
		return template.Status.Conditions[0].Reason
	}
	g.Expect(reconciled()).To(Equal(driverv1.IdentityNotFoundReason))
	id := identitytest.New("id", "other")
	g.Expect(server.Create(t.Context(), id)).To(Succeed())
	g.Expect(reconciled()).To(Equal(driverv1.IdentityNotAllowedReason))
	g.Expect(cloud.calls).To(BeZero())

	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{"ns"}}
	g.Expect(server.Update(t.Context(), id)).To(Succeed())
	g.Expect(reconciled()).To(Equal(driverv1.CapacityKnownReason))
	g.Expect(cloud.calls).To(Equal(1))
}
