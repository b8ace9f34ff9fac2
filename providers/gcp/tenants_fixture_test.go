package main

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// email is a service account of the test's own.
func (f *fixture) email(name string) string {
	return name + "@" + f.project + ".iam.gserviceaccount.com"
}

// identityName is the name of an identity in the cluster, which tests share.
func (f *fixture) identityName(name string) string { return f.Namespace + "-" + name }

// keys writes the Secret of an identity, in place of what is there.
func (f *fixture) keys(name string, file map[string]string) {
	content, err := json.Marshal(file)
	f.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testOptions().OwnNamespace(), Name: f.identityName(name)}}
	f.Expect(client.IgnoreNotFound(c.Delete(f.Ctx, secret.DeepCopy()))).To(Succeed())
	secret.StringData = map[string]string{"credentials.json": string(content)}
	f.Expect(c.Create(f.Ctx, secret)).To(Succeed())
}

// identity creates an identity with a Secret of its name that the namespace of the test may use. It goes with the test.
func (f *fixture) identity(name string, changes ...func(*infrav1.GCPIdentitySpec)) {
	id := &infrav1.GCPIdentity{ObjectMeta: metav1.ObjectMeta{Name: f.identityName(name), Labels: f.labels()}}
	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{f.Namespace}}
	id.Spec.Secret = &infrav1.SecretCredentials{Name: f.identityName(name)}
	for _, change := range changes {
		change(&id.Spec)
	}
	f.Expect(c.Create(f.Ctx, id)).To(Succeed())
	f.t.Cleanup(func() { _ = c.Delete(context.Background(), id) })
}

// with has a machine name an identity.
func (f *fixture) with(name string) func(*infrav1.GCPMachineSpec) {
	return func(s *infrav1.GCPMachineSpec) {
		s.IdentityRef = &driverv1.IdentityReference{Name: f.identityName(name)}
	}
}

// state returns "status reason: message" of a condition of an identity.
func (f *fixture) state(name, conditionType string) func() string {
	return func() string {
		id := &infrav1.GCPIdentity{}
		if err := c.Get(f.Ctx, client.ObjectKey{Name: f.identityName(name)}, id); err != nil {
			return err.Error()
		}
		if found := meta.FindStatusCondition(id.Status.Conditions, conditionType); found != nil {
			return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
		}
		return "none"
	}
}

func (f *fixture) accepted(name string) *infrav1.GCPIdentity {
	f.Eventually(f.state(name, driverv1.IdentityReadyCondition)).Should(HavePrefix("True CredentialsAccepted"))
	id := &infrav1.GCPIdentity{}
	f.Expect(c.Get(f.Ctx, client.ObjectKey{Name: f.identityName(name)}, id)).To(Succeed())
	return id
}

// change changes an identity, which has it checked again.
func (f *fixture) change(name string, change func(*infrav1.GCPIdentitySpec)) {
	f.Eventually(func() error {
		id := &infrav1.GCPIdentity{}
		if err := c.Get(f.Ctx, client.ObjectKey{Name: f.identityName(name)}, id); err != nil {
			return err
		}
		change(&id.Spec)
		return c.Update(f.Ctx, id)
	}).Should(Succeed())
}

// callers are who has called in the project of the test.
func (f *fixture) callers() []string {
	found := map[string]bool{}
	for _, call := range sim.Calls() {
		if call.Parameters["project"] == f.project {
			found[call.Caller] = true
		}
	}
	var all []string
	for caller := range found {
		all = append(all, caller)
	}
	return all
}
