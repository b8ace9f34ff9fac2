package controller

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

func aRequest(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificateRequest(
		rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:machine", Organization: []string{"system:nodes"}}},
		key,
	)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})
}

// failing returns a client whose writes call before; an error of it takes the write's place, or its
// answer's when after is set.
func failing(t *testing.T, before func() error, after bool) client.Client {
	t.Helper()
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	if err != nil {
		t.Fatal(err)
	}
	do := func(write func() error) error {
		fault := before()
		if fault != nil && !after {
			return fault
		}
		if err := write(); err != nil {
			return err
		}
		return fault
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return do(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return do(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return do(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return do(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return do(func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
}

// The program exits at the n-th write, before or after it has taken effect, and another one continues.
// Whatever n is, the machine gets what it needs, and nothing is left when it is gone.
func TestCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n, reached := 1, true; reached; n++ {
			f := configured(t)
			writes := 0
			crash := func() error {
				if writes++; writes >= n {
					return errors.New("the program has exited")
				}
				return nil
			}
			whole := f.home
			f.home = failing(t, crash, after)
			f.remote = f.home
			stages := []func(){func() {}, f.provisioned, f.joined, func() { f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed()) }}
			for i, stage := range stages {
				if i == 1 && f.config.Status.DataSecretName == "" {
					t.Fatalf("crash %d: no user data", n)
				}
				stage()
				if _, err := f.try(); err != nil {
					f.home, f.remote = whole, whole
					f.reconcile()
				}
			}
			reached = writes >= n
			f.Expect(f.inTarget()).To(BeEmpty(), "crash %d, after the write: %v", n, after)
			f.Expect(f.dataSecret()).To(BeNil(), "crash %d", n)
			if !reached {
				t.Logf("crashed at %d writes", n-1)
				f.Expect(n).To(BeNumerically(">", 15))
			}
		}
	}
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	f := configured(t)
	meta := metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}
	role := &rbacv1.Role{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	f.create(role)
	_, err := f.try()
	f.Expect(err).To(HaveOccurred())
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.ForeignObjectReason)).
		To(ContainSubstring("Role " + f.names.Object()))
	f.Expect(f.config.Status.DataSecretName).To(BeEmpty(), "user data that does not work is not published")
	f.Expect(f.client.Delete(f.ctx, role)).To(Succeed())
	f.reconcile()

	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"mine": []byte("x")}}
	f.create(secret)
	f.provisioned()
	_, err = f.try()
	f.Expect(err).To(HaveOccurred())
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionFalse, bootstrapv1.ForeignObjectReason)
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.nodeSecret().Data).To(HaveKey("mine"))
	f.Expect(f.inTarget()).To(BeEmpty())
	f.Expect(f.client.Delete(f.ctx, secret)).To(Succeed())
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	f := configured(t)
	f.remote = failing(t, func() error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, f.names.Object(), errors.New("no right to create roles"))
	}, false)
	_, err := f.try()
	f.Expect(err).To(HaveOccurred())
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.TargetForbiddenReason)).
		To(ContainSubstring("no right to create roles"))
}

// clusterctl move drops the status and makes new UIDs.
func TestMove(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	data, join := f.dataSecret(), f.joinToken()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Succeed())
	f.config.Status = bootstrapv1.CloudConfigStatus{Conditions: []metav1.Condition{}}
	f.Expect(f.client.Status().Update(f.ctx, f.config)).To(Succeed())

	f.reconcile()
	f.Expect(f.config.Status.DataSecretName).To(Equal(data.Name))
	f.Expect(f.config.Status.Initialization.DataSecretCreated).To(HaveValue(BeTrue()))
	f.Expect(f.dataSecret().ResourceVersion).To(Equal(data.ResourceVersion), "user data was written again")
	f.Expect(f.joinToken()).To(Equal(join))
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
}

func TestUserDataThatIsLost(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.Expect(f.client.Delete(f.ctx, f.dataSecret())).To(Succeed())
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.DataSecretLostReason)).
		To(ContainSubstring("replace Machine"))
	f.Expect(f.dataSecret()).To(BeNil(), "another one would hold another token than the machine may have")
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionTrue, bootstrapv1.SyncedReason)
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty(), "the status names the token too")
}

func TestDeletionAtEachStage(t *testing.T) {
	for name, advance := range map[string]func(*fixture){
		"before anything":   func(*fixture) {},
		"user data":         func(f *fixture) { f.reconcile() },
		"the node's Secret": func(f *fixture) { f.reconcile(); f.provisioned(); f.reconcile() },
		"joined":            func(f *fixture) { f.reconcile(); f.provisioned(); f.reconcile(); f.joined(); f.reconcile() },
		"joined, not seen":  func(f *fixture) { f.reconcile(); f.provisioned(); f.reconcile(); f.joined() },
		"its Machine gone": func(f *fixture) {
			f.reconcile()
			f.provisioned()
			f.reconcile()
			f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
		},
		"status and Machine lost": func(f *fixture) {
			f.reconcile()
			f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
			f.config.Status = bootstrapv1.CloudConfigStatus{Conditions: []metav1.Condition{}}
			f.Expect(f.client.Status().Update(f.ctx, f.config)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := configured(t)
			advance(f)
			f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
			f.reconcile()
			f.Expect(f.inTarget()).To(BeEmpty())
			f.Expect(f.dataSecret()).To(BeNil())
			f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
		})
	}
}

func TestDeletionWithoutTheTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		cut func(*fixture)
		// next is when it is checked again without an event.
		next time.Duration
	}{
		"no connection": {func(f *fixture) { f.connected = false }, 5 * time.Minute},
		"no answer": {func(f *fixture) {
			f.remote = failing(t, func() error { return errors.New("connection refused") }, false)
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := configured(t)
			f.reconcile()
			tc.cut(f)
			f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
			result := f.reconcile()
			f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DeletingReason)).
				To(ContainSubstring("cannot be reached"))
			f.Expect(result.RequeueAfter).To(BeNumerically("~", tc.next, 10*time.Second))
			f.Expect(f.dataSecret()).NotTo(BeNil())

			f.clock.Step(6 * time.Minute) // the API server has set the time of deletion, later than the fixture its clock
			f.reconcile()
			f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
			f.Expect(f.inTarget()).NotTo(BeEmpty(), "it could not be reached")
			f.Expect(f.events.Events).To(Receive(ContainSubstring("Created the user data")))
			f.Expect(f.events.Events).To(Receive(And(ContainSubstring("Left Secret"), ContainSubstring("cannot be reached"))))
		})
	}
	t.Run("no Cluster", func(t *testing.T) {
		f := configured(t)
		f.reconcile()
		f.connected = false
		f.Expect(f.client.Delete(f.ctx, f.cluster)).To(Succeed())
		f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
		f.reconcile()
		f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
	})
}
