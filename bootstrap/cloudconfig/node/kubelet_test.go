package node

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func TestKubeletUnitFile(t *testing.T) {
	g := NewWithT(t)
	unit := string(KubeletUnitFile(KubeletOptions{
		NodeName: "machine-1", ProviderID: "aws:///us-east-1a/i-1",
		Spec: bootstrapv1.KubeletSpec{
			NodeLabels: map[string]bootstrapv1.LabelValue{"b": "2", "a": "1"},
			Taints:     []bootstrapv1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}},
			ExtraArgs:  []bootstrapv1.Arg{{Name: "v", Value: "4"}, {Name: "node-ip", Value: "a b"}},
		},
	}))
	var command string
	for _, line := range strings.Split(unit, "\n") {
		if rest, ok := strings.CutPrefix(line, "ExecStart="); ok {
			command = rest
		}
	}
	g.Expect(command).To(Equal("/opt/bin/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/var/lib/kubelet/kubeconfig-real " +
		"--bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap --cert-dir=/var/lib/kubelet/pki --root-dir=/var/lib/kubelet " +
		"--hostname-override=machine-1 --provider-id=aws:///us-east-1a/i-1 " +
		"--register-with-taints=node.cluster.x-k8s.io/uninitialized=:NoSchedule,k=v:NoExecute " +
		`--node-labels=a=1,b=2 --v=4 "--node-ip=a b"`))
}

func TestLabels(t *testing.T) {
	g := NewWithT(t)
	for key, ok := range map[string]bool{
		"a": true, "example.com/a": true, "node.kubernetes.io/a": true, "x.node.kubernetes.io/a": true, "kubernetes.io/os": true,
		"topology.kubernetes.io/zone": true, "notkubernetes.io/a": true,
		"node-role.kubernetes.io/worker": false, "kubernetes.io/a": false, "x.k8s.io/a": false, "a,b": false, "a=b": false, "": false, "a b": false,
	} {
		_, err := NewBundle(
			&bootstrapv1.CloudConfigSpec{},
			nil,
			KubeletOptions{Spec: bootstrapv1.KubeletSpec{NodeLabels: map[string]bootstrapv1.LabelValue{key: ""}}},
		)
		var invalid *InvalidLabelError
		g.Expect(errors.As(err, &invalid)).To(Equal(!ok), key)
	}
}

func TestQuoteForSystemd(t *testing.T) {
	for word, want := range map[string]string{
		"--a=b": "--a=b", "": `""`, "50%": "50%%", "$HOME": "$$HOME", "a b": `"a b"`,
		`a"b`: `"a\"b"`, `a\b`: `"a\\b"`, "a;b": `"a;b"`, "'": `"'"`,
	} {
		if got := quoteForSystemd(word); got != want {
			t.Errorf("%q is written %s, not %s", word, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	g := NewWithT(t)
	secret := func(ref bootstrapv1.SecretKeyReference) ([]byte, error) {
		if ref.Key == "" {
			return nil, errors.New("missing")
		}
		return []byte(ref.Name + "/" + ref.Key), nil
	}
	spec := &bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{
		{Path: "/a", Content: ptr.To("plain")},
		{Path: "/b", Content: ptr.To("aGk\n  ="), Encoding: bootstrapv1.FileEncodingBase64},
		{Path: "/c", ContentFrom: &bootstrapv1.FileSource{Secret: bootstrapv1.SecretKeyReference{Name: "s", Key: "k"}}, Permissions: "0600"},
		{Path: "/d", Content: ptr.To("boot"), Stage: bootstrapv1.FileStageBoot},
	}}
	managed, err := Files(spec, false, secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(managed).To(Equal([]File{
		{Path: "/a", Mode: "0644", Content: []byte("plain")}, {Path: "/b", Mode: "0644", Content: []byte("hi")},
		{Path: "/c", Mode: "0600", Content: []byte("s/k")},
	}))
	boot, err := Files(spec, true, secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(boot).To(Equal([]File{{Path: "/d", Mode: "0644", Content: []byte("boot")}}))

	spec.Files[1].Content = ptr.To("confidential, not base64")
	_, err = Files(spec, false, secret)
	var invalid *InvalidContentError
	g.Expect(errors.As(err, &invalid)).To(BeTrue())
	g.Expect(err.Error()).NotTo(ContainSubstring("confidential"))

	spec.Files = []bootstrapv1.File{{Path: "/e", ContentFrom: &bootstrapv1.FileSource{}}}
	_, err = Files(spec, false, secret)
	g.Expect(err).To(MatchError("missing"))
}
