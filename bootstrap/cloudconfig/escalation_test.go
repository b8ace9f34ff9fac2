package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/test/testenv"
)

var nothing = client.RawPatch(types.MergePatchType, []byte("{}"))

// TestTheTargetIdentityIsNoClusterAdmin walks, with a token of the identity of config/target-cluster, each step of the way to
// cluster-admin.
func TestTheTargetIdentityIsNoClusterAdmin(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	admin := newClient(t, env.Config)
	for _, name := range []string{"namespace", "tokens_policy", "service_account", "cluster_role", "join_requests", "role"} {
		install(t, admin, filepath.Join(testenv.Root(), "config/target-cluster", name+".yaml"))
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfigFor(t, admin, "kube-system", "millwright-target"))
	g.Expect(err).NotTo(HaveOccurred())
	identity := newClient(t, config)
	powerful := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "powerful"}}
	g.Expect(admin.Create(ctx, powerful)).To(Succeed())
	tokenOf := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: powerful.Name},
			Labels: map[string]string{nodeaccess.HashLabel: "0123456789abcdef0123"},
		}, Type: corev1.SecretTypeServiceAccountToken}
	}
	refused := Or(Satisfy(apierrors.IsForbidden), Satisfy(apierrors.IsInvalid))

	// The API server learns of a policy by watching it.
	tried := 0
	g.Eventually(func() error {
		tried++
		return identity.Create(ctx, tokenOf("kube-system", fmt.Sprintf("bootstrap-token-try%d", tried)))
	}).WithTimeout(time.Minute).Should(refused, "a token for another account")
	theirs := tokenOf("kube-system", "bootstrap-token-theirs")
	g.Expect(admin.Create(ctx, theirs)).To(Succeed())
	read := theirs.DeepCopy()
	g.Expect(identity.Get(ctx, client.ObjectKeyFromObject(theirs), read)).To(refused)
	g.Expect(identity.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))).To(refused)
	g.Expect(identity.Patch(ctx, read, nothing)).To(refused, "the answer carries the object")
	var foreign *nodeaccess.ForeignError
	_, err = (&nodeaccess.Machine{Client: identity, Names: nodeaccess.Names{Hash: "0123456789abcdef0123"}}).EnsureToken(
		ctx,
		nodeaccess.TokenOptions{
			Token: nodeaccess.Token{ID: "theirs", Secret: "0123456789abcdef"}, TTL: time.Minute, Now: time.Now(),
		},
	)
	g.Expect(errors.As(err, &foreign)).To(BeTrue(), "it is known by the name of the policy that denies it: %v", err)
	g.Expect(identity.Delete(ctx, read)).To(refused)
	g.Expect(identity.Update(ctx, read)).To(refused)
	g.Expect(identity.SubResource("token").Create(ctx, powerful, &authenticationv1.TokenRequest{})).To(refused)

	admins := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "millwright-target"}}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "stolen"}
	}
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	for name, object := range map[string]client.Object{
		"a ClusterRoleBinding":                 &rbacv1.ClusterRoleBinding{ObjectMeta: meta(""), RoleRef: admins, Subjects: subjects},
		"a ClusterRole":                        &rbacv1.ClusterRole{ObjectMeta: meta(""), Rules: all},
		"a RoleBinding of kube-system":         &rbacv1.RoleBinding{ObjectMeta: meta("kube-system"), RoleRef: admins, Subjects: subjects},
		"a RoleBinding of its own namespace":   &rbacv1.RoleBinding{ObjectMeta: meta(nodeaccess.DefaultNamespace), RoleRef: admins, Subjects: subjects},
		"a Role of its own namespace":          &rbacv1.Role{ObjectMeta: meta(nodeaccess.DefaultNamespace), Rules: all},
		"a pod":                                &corev1.Pod{ObjectMeta: meta("kube-system"), Spec: corev1.PodSpec{ServiceAccountName: "powerful", Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
		"a pod in its namespace":               &corev1.Pod{ObjectMeta: meta(nodeaccess.DefaultNamespace), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
		"a webhook":                            &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta("")},
		"a Secret of another namespace":        &corev1.Secret{ObjectMeta: meta("default")},
		"a Secret of another kind":             &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-opaque", Labels: theirs.Labels}},
		"a token that kubeadm's roles are for": bootstrapToken("kubeadm", "system:bootstrappers:kubeadm:default-node-token"),
		"a foreign group that ends in :join": bootstrapToken("within",
			"system:bootstrappers:cloud-config,system:bootstrappers:join,"+nodeaccess.RequestGroup),
		"the same behind one of ours": bootstrapToken("behind",
			nodeaccess.Names{Hash: "0123456789abcdef0123"}.DownloadGroup()+",system:bootstrappers:kubeadm:default-node-token"),
	} {
		g.Expect(identity.Create(ctx, object)).To(refused, name)
	}
	g.Expect(identity.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}})).To(refused)
	g.Expect(identity.Patch(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}, nothing)).To(refused)
	g.Expect(identity.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "millwright-target-tokens"},
	})).
		To(refused)

	// What it is for it may do, and no more with it than that.
	names := nodeaccess.Names{Hash: "0123456789abcdef0123"}
	for id, groups := range map[string]string{
		"aaaaaa": names.DownloadGroup(), "bbbbbb": names.JoinGroup() + "," + nodeaccess.RequestGroup,
		"cccccc": names.JoinGroup() + "," + nodeaccess.RequestGroup + "," + nodeaccess.SharedJoinGroup,
	} {
		ours := bootstrapToken(id, groups)
		g.Expect(identity.Create(ctx, ours)).To(Succeed(), groups)
		g.Expect(identity.Patch(ctx, ours, nothing)).To(Succeed())
		before := ours.DeepCopy()
		ours.Data["auth-extra-groups"] = []byte("system:bootstrappers:kubeadm:default-node-token")
		g.Expect(identity.Patch(ctx, ours.DeepCopy(), client.MergeFrom(before))).To(refused)
		g.Expect(identity.Delete(ctx, ours)).To(Succeed())
	}
	g.Expect(admin.Delete(ctx, theirs)).To(Succeed())
}

func bootstrapToken(id, groups string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: nodeaccess.TokenSecretName(id), Labels: map[string]string{nodeaccess.HashLabel: "0123456789abcdef0123"},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"), "auth-extra-groups": []byte(groups)},
	}
}
