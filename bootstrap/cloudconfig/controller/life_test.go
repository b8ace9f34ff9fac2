package controller

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// counting returns a client that counts status patches and other writes.
func counting(t *testing.T, status, others *int) client.Client {
	t.Helper()
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	if err != nil {
		t.Fatal(err)
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			*status++
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			*others++
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			*others++
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if data, err := p.Data(obj); err != nil || string(data) != "{}" {
				*others++ // One that changes nothing reads a token.
			}
			return c.Patch(ctx, obj, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			*others++
			return c.Delete(ctx, obj, opts...)
		},
	})
}

func TestLife(t *testing.T) {
	f := configured(t, func(c *bootstrapv1.CloudConfig) {
		c.Spec.Files = []bootstrapv1.File{{Path: "/etc/motd", Content: ptr.To("hello")}}
	})
	status, others := 0, 0
	f.home = counting(t, &status, &others)
	f.remote = f.home

	f.reconcile()
	f.Expect(status).To(Equal(1))
	f.Expect(f.config.Finalizers).To(ConsistOf(bootstrapv1.Finalizer))
	f.Expect(f.config.Status.DataSecretName).To(Equal("machine"))
	f.Expect(f.config.Status.Ready).To(HaveValue(BeTrue()), "contract v1beta1")
	f.Expect(f.config.Status.Initialization.DataSecretCreated).To(HaveValue(BeTrue()), "contract v1beta2")
	data := f.dataSecret()
	f.Expect(data.Type).To(Equal(clusterv1.ClusterSecretType))
	f.Expect(data.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "cluster"))
	f.Expect(metav1.IsControlledBy(data, f.config)).To(BeTrue())
	f.Expect(string(data.Data["format"])).To(Equal("cloud-config"))
	f.Expect(string(data.Data["value"])).To(And(HavePrefix("#cloud-config\n"), ContainSubstring("https://api.example.com:6443"),
		ContainSubstring(f.downloadToken().Plain()), ContainSubstring(f.names.Object())))
	f.Expect(f.config.Status.Target).To(Equal(bootstrapv1.TargetStatus{Name: f.names.Object(), DownloadTokenID: f.downloadToken().ID}))
	f.Expect(f.inTarget()).
		To(ConsistOf("Secret bootstrap-token-"+f.downloadToken().ID, "Role "+f.names.Object(), "RoleBinding "+f.names.Object()))

	f.provisioned()
	f.reconcile()
	f.Expect(status).To(Equal(2))
	secret := f.nodeSecret()
	f.Expect(secret.Data).To(And(HaveKey(node.PayloadKey), HaveKeyWithValue(node.NodeNameKey, []byte("machine")),
		HaveKeyWithValue(node.ProviderIDKey, []byte("aws:///us-east-1a/i-0123456789abcdef0")),
		HaveKeyWithValue(node.RevisionKey, []byte(f.config.Status.Target.Revision))))
	f.Expect(f.config.Status.Target.JoinTokenID).To(Equal(f.joinToken().ID))
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)

	before := others
	f.reconcile()
	f.Expect(status).To(Equal(2), "nothing has changed, nothing is written")
	f.Expect(others).To(Equal(before))

	f.update(f.config, func() { f.config.Spec.Files[0].Content = ptr.To("changed") })
	revision, join := f.config.Status.Target.Revision, f.joinToken()
	f.reconcile()
	f.Expect(f.config.Status.Target.Revision).NotTo(Equal(revision))
	f.Expect(f.joinToken()).To(Equal(join), "another revision needs no other token")
	f.Expect(f.dataSecret().Data).To(Equal(data.Data), "user data never changes")

	f.joined()
	status = 0
	result := f.reconcile()
	f.Expect(status).To(Equal(1))
	f.Expect(result.RequeueAfter).To(BeZero(), "there is nothing to wait for")
	f.Expect(f.inTarget()).To(ConsistOf("Secret "+f.names.Object(), "Role "+f.names.Object(), "RoleBinding "+f.names.Object()))
	f.Expect(f.nodeSecret().Data).NotTo(HaveKey(node.JoinTokenKey))
	f.condition(bootstrapv1.BootstrapTokenValidCondition, metav1.ConditionTrue, bootstrapv1.NotNeededReason)
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	before = others
	f.reconcile()
	f.Expect(others).To(Equal(before))

	everything, err := json.Marshal(f.config)
	f.Expect(err).NotTo(HaveOccurred())
	for len(f.events.Events) > 0 {
		everything = append(everything, <-f.events.Events...)
	}
	f.Expect(string(everything)).NotTo(Or(ContainSubstring(join.Secret), ContainSubstring(f.downloadToken().Secret)), "a secret has leaked")

	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty())
	f.Expect(f.dataSecret()).To(BeNil())
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
}

// What a machine holds before it joins reads its own Secret and nothing else, against the real API server.
func TestWhatTokensMayDo(t *testing.T) {
	other := configured(t)
	other.reconcile()
	other.provisioned()
	other.reconcile()
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	key := func(names nodeaccess.Names) client.ObjectKey {
		return client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: names.Object()}
	}
	csr := func(name string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Request: aRequest(t),
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		}
	}

	download := f.as(bearer(f.downloadToken()))
	// The API server learns of tokens and roles by watching them.
	f.Eventually(func() error { return download.Get(f.ctx, key(f.names), &corev1.Secret{}) }, "30s").Should(Succeed())
	join := f.as(bearer(f.joinToken()))
	name := "request-" + f.names.Hash
	f.Eventually(func() error { return join.Create(f.ctx, csr(name)) }, "30s").Should(Succeed())

	forbidden := Satisfy(apierrors.IsForbidden)
	f.Expect(download.Get(f.ctx, key(other.names), &corev1.Secret{})).To(forbidden, "another node's Secret")
	f.Expect(download.Get(f.ctx, client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + f.joinToken().ID}, &corev1.Secret{})).
		To(forbidden)
	f.Expect(download.List(f.ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))).To(forbidden)
	f.Expect(download.Get(f.ctx, client.ObjectKey{Namespace: f.config.Namespace, Name: "machine"}, &corev1.Secret{})).
		To(forbidden, "user data")
	f.Expect(download.Create(f.ctx, csr("x-"+f.names.Hash))).To(forbidden, "the download token cannot ask for certificates")
	f.Expect(download.List(f.ctx, &corev1.NodeList{})).To(forbidden)
	f.Expect(download.Update(f.ctx, f.nodeSecret())).To(forbidden)
	f.Expect(join.Get(f.ctx, key(f.names), &corev1.Secret{})).To(forbidden, "the join token reads no Secret")
	f.Expect(join.List(f.ctx, &corev1.NodeList{})).To(forbidden)

	asNode := func(name string) client.Client {
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"}}
		c, err := client.New(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
		f.Expect(err).NotTo(HaveOccurred())
		return c
	}
	f.Expect(asNode("machine").Get(f.ctx, key(f.names), &corev1.Secret{})).To(forbidden, "the Node is not linked yet")
	lost := f.downloadToken()
	f.joined()
	f.reconcile()
	f.Eventually(func() error { return asNode("machine").Get(f.ctx, key(f.names), &corev1.Secret{}) }, "30s").Should(Succeed())
	f.Expect(asNode("machine").Get(f.ctx, key(other.names), &corev1.Secret{})).To(forbidden)
	f.Expect(asNode("another").Get(f.ctx, key(f.names), &corev1.Secret{})).To(forbidden)
	// The API server remembers for ten seconds that a token was good.
	f.Eventually(func() error { return f.as(bearer(lost)).Get(f.ctx, key(f.names), &corev1.Secret{}) }, "30s", "100ms").
		Should(Satisfy(apierrors.IsUnauthorized), "the token is worth nothing after the join")
}

func TestTokensAreKeptValidUntilTheJoin(t *testing.T) {
	f := configured(t, func(c *bootstrapv1.CloudConfig) {
		c.Spec.Bootstrap.TokenTTL = &metav1.Duration{Duration: 6 * time.Minute}
	})
	f.reconcile()
	f.provisioned()
	result := f.reconcile()
	f.Expect(result.RequeueAfter).To(BeNumerically("~", 2*time.Minute, 2*time.Second))
	first := nodeaccess.Expiration(f.token(f.joinToken().ID))

	f.clock.Step(time.Minute)
	f.reconcile()
	f.Expect(nodeaccess.Expiration(f.token(f.joinToken().ID))).To(Equal(first), "it is not time yet")

	f.clock.Step(time.Minute + 2*time.Second)
	f.reconcile()
	for _, id := range []string{f.joinToken().ID, f.downloadToken().ID} {
		f.Expect(nodeaccess.Expiration(f.token(id))).To(BeTemporally("~", f.clock.Now().Add(6*time.Minute), time.Second))
	}

	// An outage outlived the tokens, and the token cleaner has deleted them.
	download, join := f.downloadToken(), f.joinToken()
	f.clock.Step(time.Hour)
	f.Expect(f.client.Delete(f.ctx, f.token(download.ID))).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.token(join.ID))).To(Succeed())
	f.reconcile()
	f.Expect(f.downloadToken()).To(Equal(download), "it is in the user data, which cannot change")
	f.Expect(string(f.token(download.ID).Data["token-secret"])).To(Equal(download.Secret))
	f.Expect(f.joinToken()).NotTo(Equal(join), "the machine downloads another one")
	f.Expect(f.token(f.joinToken().ID)).NotTo(BeNil())
	f.Expect(f.config.Status.Target.JoinTokenID).To(Equal(f.joinToken().ID))
	f.Expect(nodeaccess.JoinTokens(f.nodeSecret())).
		To(Equal([]string{join.ID, f.joinToken().ID}), "a request that was made with the first is its own still")
	f.condition(bootstrapv1.BootstrapTokenValidCondition, metav1.ConditionTrue, bootstrapv1.ValidReason)
}

func TestAnIDThatIsTaken(t *testing.T) {
	f := configured(t)
	taken := func(id string) {
		f.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
			Type:       corev1.SecretTypeBootstrapToken, Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef")},
		})
	}
	// A user takes the id between the creation of the user data and that of the token.
	downloadTaken, joinTaken := nodeaccess.NewToken(), nodeaccess.NewToken()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Succeed())
	f.create(newDataSecret(&scope{Base: base(f.config), machine: f.machine}, []byte("x"), downloadTaken))
	taken(downloadTaken.ID)
	_, err := f.try()
	f.Expect(err).To(HaveOccurred())
	f.Expect(f.config.Status.DataSecretName).To(BeEmpty())
	f.reconcile()
	f.Expect(f.downloadToken().ID).NotTo(Equal(downloadTaken.ID))

	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: nodeaccess.DefaultNamespace,
			Name:      f.names.Object(),
			Labels:    map[string]string{nodeaccess.HashLabel: f.names.Hash},
		},
		Data: map[string][]byte{node.JoinTokenKey: []byte(joinTaken.Plain())},
	})
	taken(joinTaken.ID)
	f.provisioned()
	_, err = f.try()
	f.Expect(err).To(HaveOccurred())
	f.reconcile()
	f.Expect(f.joinToken().ID).NotTo(Equal(joinTaken.ID))
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)

	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty())
	f.Expect(f.token(downloadTaken.ID)).NotTo(BeNil(), "a foreign token stays")
	f.Expect(f.token(joinTaken.ID)).NotTo(BeNil())
}

// An outage has outlived the join token, and the target cluster has no token cleaner. To extend it would be to give the kubelet, which
// has asked with it unsuccessfully, no more approvals.
func TestAJoinTokenThatHasExpiredIsReplaced(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	join := f.joinToken()
	f.clock.Step(time.Hour)
	f.reconcile()
	f.Expect(f.joinToken().ID).NotTo(Equal(join.ID))
	f.Expect(f.token(join.ID)).To(BeNil(), "the old one is not left behind")
	f.Expect(f.token(f.joinToken().ID)).NotTo(BeNil())
	f.Expect(nodeaccess.JoinTokens(f.nodeSecret())).To(Equal([]string{join.ID, f.joinToken().ID}))
}
