package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestFilesTakeNothingThatWasNotMeantForThem: who may write CloudConfigs and no Secrets reads none by way of the machine.
func TestFilesTakeNothingThatWasNotMeantForThem(t *testing.T) {
	opened := map[string]string{bootstrapv1.FileSourceLabel: "true"}
	for name, tc := range map[string]struct {
		secret corev1.Secret
		// reason is empty when the content is taken.
		reason string
	}{
		"a labelled one":           {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: opened}}, ""},
		"without the label":        {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, bootstrapv1.WaitingForFileSourceReason},
		"with another value":       {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{bootstrapv1.FileSourceLabel: "false"}}}, bootstrapv1.WaitingForFileSourceReason},
		"a kubeconfig by its name": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other-kubeconfig", Labels: opened}}, bootstrapv1.FileSourceRefusedReason},
		"a CA by its name":         {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cluster-ca", Labels: opened}}, bootstrapv1.FileSourceRefusedReason},
		"user data by its type":    {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: opened}, Type: clusterv1.ClusterSecretType}, bootstrapv1.FileSourceRefusedReason},
		"a service account's token": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: "s", Labels: opened, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
		}, Type: corev1.SecretTypeServiceAccountToken}, bootstrapv1.FileSourceRefusedReason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.config.Namespace, Name: "default"}})
			tc.secret.Namespace, tc.secret.Data = f.config.Namespace, map[string][]byte{"k": []byte("content-of-it")}
			f.create(&tc.secret)
			f.config.Spec.Files = []bootstrapv1.File{{Path: "/etc/a", Stage: bootstrapv1.FileStageBoot, ContentFrom: &bootstrapv1.FileSource{
				Secret: bootstrapv1.SecretKeyReference{Name: tc.secret.Name, Key: "k"},
			}}}
			f.create(f.config)
			f.reconcile()
			if tc.reason == "" {
				f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
				return
			}
			f.Expect(f.dataSecret()).To(BeNil())
			f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, tc.reason)).To(ContainSubstring("Secret " + tc.secret.Name))
		})
	}
}
