package identity_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/identitytest"
)

// user is an object that names an identity.
type user struct {
	corev1.ConfigMap
	identity string
}

func (u *user) IdentityName() string { return u.identity }

func userOf(namespace, name string) *user {
	return &user{ConfigMap: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}, identity: name}
}

func newServer(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(identitytest.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(corev1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func guardOf(reader client.Reader) *identity.Guard {
	return &identity.Guard{Reader: reader, Kind: identitytest.Kind, New: func() identity.Object { return &identitytest.Identity{} }}
}

func TestAllows(t *testing.T) {
	labelled := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": value}}
	}
	for name, test := range map[string]struct {
		allowed *driverv1.AllowedNamespaces
		want    bool
	}{
		"unset is none":           {nil, false},
		"empty is all":            {&driverv1.AllowedNamespaces{}, true},
		"by name":                 {&driverv1.AllowedNamespaces{Names: []string{"other", "ns"}}, true},
		"of another name":         {&driverv1.AllowedNamespaces{Names: []string{"n", "nsx", "NS"}}, false},
		"by label":                {&driverv1.AllowedNamespaces{Selector: labelled("a")}, true},
		"of another label":        {&driverv1.AllowedNamespaces{Selector: labelled("b")}, false},
		"an empty selector":       {&driverv1.AllowedNamespaces{Selector: &metav1.LabelSelector{}}, true},
		"either suffices: name":   {&driverv1.AllowedNamespaces{Names: []string{"ns"}, Selector: labelled("b")}, true},
		"either suffices: label":  {&driverv1.AllowedNamespaces{Names: []string{"other"}, Selector: labelled("a")}, true},
		"a selector that is none": {&driverv1.AllowedNamespaces{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tenant", Operator: "Near"}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(identity.Allows(test.allowed, "ns", map[string]string{"tenant": "a"})).To(Equal(test.want))
		})
	}
}

func TestWhoMayUseAnIdentity(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) func(*identitytest.Identity) {
		return func(id *identitytest.Identity) { id.SetReady(status, reason) }
	}
	deleted := func(id *identitytest.Identity) {
		id.Finalizers, id.DeletionTimestamp = []string{"x/y"}, new(metav1.Now())
	}
	for name, test := range map[string]struct {
		adjust    func(*identitytest.Identity)
		namespace string
		names     string
		holds     bool
		required  bool
		unused    bool
		want      string
	}{
		"allowed and ready":                            {namespace: "ns", names: "id"},
		"the process's own":                            {namespace: "ns"},
		"the process's own, for no namespace":          {namespace: "ns", required: true, want: driverv1.IdentityNotAllowedReason},
		"named, where one is required":                 {namespace: "ns", names: "id", required: true},
		"named, where none is used":                    {namespace: "ns", names: "id", unused: true, want: driverv1.IdentityNotAllowedReason},
		"the process's own, where no identity is used": {namespace: "ns", unused: true},
		"missing":                                          {namespace: "ns", names: "other", want: driverv1.IdentityNotFoundReason},
		"of another namespace":                             {namespace: "thief", names: "id", want: driverv1.IdentityNotAllowedReason},
		"not checked yet":                                  {namespace: "ns", names: "id", adjust: func(id *identitytest.Identity) { id.Status.Conditions = nil }, want: driverv1.IdentityNotReadyReason},
		"refused by the cloud":                             {namespace: "ns", names: "id", adjust: ready(metav1.ConditionFalse, driverv1.CredentialsRefusedReason), want: driverv1.IdentityNotReadyReason},
		"refused by the cloud, for what exists":            {namespace: "ns", names: "id", holds: true, adjust: ready(metav1.ConditionFalse, driverv1.CredentialsRefusedReason), want: driverv1.IdentityNotReadyReason},
		"the cloud did not answer":                         {namespace: "ns", names: "id", adjust: ready(metav1.ConditionUnknown, driverv1.NotVerifiedReason)},
		"accepted as it was before":                        {namespace: "ns", names: "id", adjust: func(id *identitytest.Identity) { id.Generation = 7 }},
		"being deleted":                                    {namespace: "ns", names: "id", adjust: deleted, want: driverv1.IdentityNotReadyReason},
		"being deleted, for what exists":                   {namespace: "ns", names: "id", adjust: deleted, holds: true},
		"a namespace that is not allowed, for what exists": {namespace: "thief", names: "id", holds: true, want: driverv1.IdentityNotAllowedReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			id := identitytest.New("id", "ns")
			if test.adjust != nil {
				test.adjust(id)
			}
			guard := guardOf(newServer(t, id))
			guard.Required, guard.Unused = test.required, test.unused
			refusal, err := guard.Check(t.Context(), userOf(test.namespace, test.names), test.holds)
			g.Expect(err).NotTo(HaveOccurred())
			if test.want == "" {
				g.Expect(refusal).To(BeNil())
				return
			}
			g.Expect(refusal).NotTo(BeNil())
			g.Expect(refusal.Reason).To(Equal(test.want))
			g.Expect(refusal.Message).To(ContainSubstring(identitytest.Kind))
		})
	}
}

func TestNamespacesByLabel(t *testing.T) {
	g := NewWithT(t)
	id := identitytest.New("id")
	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{
		Names: []string{"by-name"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": "a"}},
	}
	server := newServer(t, id, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{"tenant": "a"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})
	guard := guardOf(server)
	for namespace, want := range map[string]bool{"labelled": true, "plain": false, "by-name": true, "not-in-the-cache-yet": false} {
		refusal, err := guard.Check(t.Context(), userOf(namespace, "id"), false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(refusal == nil).To(Equal(want), namespace)
	}

	// What has not been read yet has no labels, which is what this one asks for.
	id.Spec.AllowedNamespaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "restricted", Operator: metav1.LabelSelectorOpDoesNotExist,
	}}}
	g.Expect(server.Update(t.Context(), id)).To(Succeed())
	refusal, err := guard.Check(t.Context(), userOf("not-in-the-cache-yet", "id"), false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refusal).NotTo(BeNil())

	failing := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Namespace); ok {
				return errors.New("no cache")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	_, err = guardOf(failing).Check(t.Context(), userOf("labelled", "id"), false)
	g.Expect(err).To(MatchError(ContainSubstring("no cache")), "what cannot be read is no answer")
}

func TestWithoutAGuardEverythingIsAllowed(t *testing.T) {
	var guard *identity.Guard
	refusal, err := guard.Check(t.Context(), userOf("ns", "id"), false)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(refusal).To(BeNil())
}
