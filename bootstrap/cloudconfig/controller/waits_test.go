package controller

import (
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// Everything that is awaited is named in the conditions, makes nothing, and is checked again by an
// event, or by a deadline where there is no event.
func TestWaits(t *testing.T) {
	secretFile := func(stage bootstrapv1.FileStage) bootstrapv1.File {
		return bootstrapv1.File{
			Path:        "/etc/a",
			Stage:       stage,
			ContentFrom: &bootstrapv1.FileSource{Secret: bootstrapv1.SecretKeyReference{Name: "s", Key: "k"}},
		}
	}
	for name, tc := range map[string]struct {
		prepare  func(*fixture)
		reason   string
		says     string
		deadline bool
	}{
		"no owner": {func(f *fixture) { f.config.OwnerReferences = nil }, bootstrapv1.WaitingForOwnerMachineReason, "configRef", false},
		"a control plane": {func(f *fixture) {
			f.update(f.machine, func() { f.machine.Labels[clusterv1.MachineControlPlaneLabel] = "" })
		}, bootstrapv1.ControlPlaneUnsupportedReason, "worker", false},
		"no Cluster": {func(f *fixture) { f.Expect(f.client.Delete(f.ctx, f.cluster)).To(Succeed()) }, bootstrapv1.WaitingForClusterReason, "does not exist", false},
		"infrastructure": {func(f *fixture) {
			f.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(false)
			f.Expect(f.client.Status().Update(f.ctx, f.cluster)).To(Succeed())
		}, bootstrapv1.WaitingForInfrastructureReason, "infrastructureProvisioned", false},
		"control plane": {func(f *fixture) {
			f.cluster.Status.Initialization.ControlPlaneInitialized = nil
			f.Expect(f.client.Status().Update(f.ctx, f.cluster)).To(Succeed())
		}, bootstrapv1.WaitingForControlPlaneReason, "controlPlaneInitialized", false},
		"no connection": {func(f *fixture) { f.connected = false }, bootstrapv1.WaitingForConnectionReason, "cluster-kubeconfig", false},
		"no kubeconfig": {func(f *fixture) {
			f.Expect(f.client.Delete(f.ctx, f.secret(f.config.Namespace, "cluster-kubeconfig"))).To(Succeed())
		}, bootstrapv1.KubeconfigInvalidReason, "does not exist", true},
		"a kubeconfig without CA": {func(f *fixture) {
			s := f.secret(f.config.Namespace, "cluster-kubeconfig")
			f.update(s, func() {
				s.Data["value"] = []byte(strings.ReplaceAll(string(s.Data["value"]), "certificate-authority-data", "x"))
			})
		}, bootstrapv1.KubeconfigInvalidReason, "certificate-authority-data", true},
		"a Secret of a file": {func(f *fixture) {
			f.config.Spec.Files = []bootstrapv1.File{secretFile(bootstrapv1.FileStageBoot)}
		}, bootstrapv1.WaitingForFileSourceReason, "Secret s with key k", true},
		// What the machine downloads is created when it has been launched. What is wrong with it is found before.
		"a Secret of a file that is downloaded": {func(f *fixture) {
			f.config.Spec.Files = []bootstrapv1.File{secretFile(bootstrapv1.FileStageManaged)}
		}, bootstrapv1.WaitingForFileSourceReason, "Secret s with key k", true},
		"downloaded content that is not base64": {func(f *fixture) {
			f.config.Spec.Files = []bootstrapv1.File{{Path: "/etc/a", Encoding: "base64", Content: ptr.To("?")}}
		}, bootstrapv1.ContentInvalidReason, "/etc/a", true},
		"a feature gate that kubelets of the version do not know": {func(f *fixture) {
			f.update(f.machine, func() { f.machine.Spec.Version = "v1.35.1" })
			f.config.Spec.Kubelet.Config = &runtime.RawExtension{Raw: []byte(`{"featureGates":{"CronJobsScheduledAnnotation":true}}`)}
		}, bootstrapv1.ContentInvalidReason, "featureGates.CronJobsScheduledAnnotation is not known to kubelets of version 1.35", false},
		"a configuration that is too large": {func(f *fixture) {
			noise := make([]byte, 1000<<10) // does not compress below the limit
			_, _ = rand.NewChaCha8([32]byte{21}).Read(noise)
			f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.config.Namespace, Name: "s", Labels: map[string]string{bootstrapv1.FileSourceLabel: "true"},
			}, Data: map[string][]byte{"k": noise}})
			f.config.Spec.Files = []bootstrapv1.File{secretFile(bootstrapv1.FileStageManaged)}
		}, bootstrapv1.ConfigTooLargeReason, "the limit is", false},
		"content that is not base64": {func(f *fixture) {
			f.config.Spec.Files = []bootstrapv1.File{{Path: "/etc/a", Stage: bootstrapv1.FileStageBoot, Encoding: "base64", Content: ptr.To("?")}}
		}, bootstrapv1.ContentInvalidReason, "/etc/a", true},
		"too much user data": {func(f *fixture) {
			large := ptr.To(strings.Repeat("x", 256<<10))
			for _, path := range []string{"/etc/a", "/etc/b", "/etc/c", "/etc/d"} {
				f.config.Spec.Files = append(f.config.Spec.Files, bootstrapv1.File{Path: path, Stage: bootstrapv1.FileStageBoot, Content: large})
			}
		}, bootstrapv1.UserDataTooLargeReason, "the limit is 921600. The largest parts when compressed: file ", false},
		"a foreign data Secret": {func(f *fixture) {
			f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.config.Namespace, Name: "machine"}})
		}, bootstrapv1.ForeignObjectReason, "Secret machine", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.prepare(f)
			f.create(f.config)
			result := f.reconcile()
			f.Expect(f.condition(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, tc.reason)).To(ContainSubstring(tc.says))
			f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, tc.reason)
			f.Expect(result.RequeueAfter > 0).To(Equal(tc.deadline), "requeued after %s", result.RequeueAfter)
			f.Expect(f.config.Status.DataSecretName).To(BeEmpty())
			f.Expect(f.inTarget()).To(BeEmpty())

			version := f.config.ResourceVersion
			f.reconcile()
			f.Expect(f.config.ResourceVersion).To(Equal(version), "nothing has changed, nothing is written")
		})
	}
}

func TestWaitsForTheMachine(t *testing.T) {
	f := configured(t, func(c *bootstrapv1.CloudConfig) {
		c.Spec.Files = []bootstrapv1.File{
			{Path: "/etc/a", ContentFrom: &bootstrapv1.FileSource{Secret: bootstrapv1.SecretKeyReference{Name: "s", Key: "k"}}},
		}
	})
	source := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: f.config.Namespace, Name: "s", Labels: map[string]string{bootstrapv1.FileSourceLabel: "true"},
		}, Data: map[string][]byte{"k": []byte("v")}}
	}
	f.create(source())
	result := f.reconcile()
	f.condition(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.AvailableReason)
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForProviderIDReason)
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	f.Expect(result.RequeueAfter).To(BeNumerically("~", bootstrapv1.DefaultTokenTTL/3, 2e9), "the token is extended")

	f.Expect(f.client.Delete(f.ctx, source())).To(Succeed()) // after the launch
	f.reconcile()
	f.condition(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.AvailableReason)
	f.provisioned()
	f.reconcile()
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForFileSourceReason)
	f.create(source())
	f.reconcile()
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
}

func TestAMachineThatIsDeletedGetsNothing(t *testing.T) {
	f := newFixture(t)
	f.update(f.machine, func() { f.machine.Finalizers = []string{"test/keep"} })
	f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
	f.create(f.config)
	f.reconcile()
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DeletingReason)
	f.Expect(f.inTarget()).To(BeEmpty())
}

func TestPause(t *testing.T) {
	for name, pause := range map[string]func(*fixture, bool){
		"the Cluster": func(f *fixture, on bool) { f.update(f.cluster, func() { f.cluster.Spec.Paused = ptr.To(on) }) },
		"the CloudConfig": func(f *fixture, on bool) {
			f.update(f.config, func() {
				f.config.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
				if !on {
					f.config.Annotations = nil
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := configured(t)
			pause(f, true)
			f.reconcile()
			f.Expect(f.condition(bootstrapv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)).To(Or(
				Equal("spec.paused of Cluster cluster is true"), Equal("the annotation cluster.x-k8s.io/paused is set")))
			f.Expect(f.config.Finalizers).To(BeEmpty())
			f.Expect(f.dataSecret()).To(BeNil())
			pause(f, false)
			f.reconcile()
			f.condition(bootstrapv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason)
			f.Expect(f.dataSecret()).NotTo(BeNil())

			pause(f, true)
			f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
			f.reconcile()
			f.Expect(f.inTarget()).NotTo(BeEmpty(), "nothing is removed while it is paused")
		})
	}
}
