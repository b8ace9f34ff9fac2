package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// KubeletOptions is what the kubelet's unit depends on. Nothing volatile may be among it: a change of
// the unit restarts the kubelet.
type KubeletOptions struct {
	// Version is the Machine's Kubernetes version; empty when it is not known.
	Version string
	// NodeName is the name that the Node will have.
	NodeName string
	// ProviderID is the Machine's; the Node is linked to the Machine by it.
	ProviderID string
	// ClusterDNS is the address of the target cluster's DNS; empty when it is not known.
	ClusterDNS string
	// ClusterDomain is the domain of the target cluster's services; empty for the kubelet's own default.
	ClusterDomain string
	// HasKubeadmAuthority means that the CloudConfig writes the file that kubeadm would keep the cluster's authority in.
	HasKubeadmAuthority bool
	// Spec is what the CloudConfig adds.
	Spec bootstrapv1.KubeletSpec
}

// KubeletUnitFile renders the unit of the kubelet.
//
// Every Node is created with the taint node.cluster.x-k8s.io/uninitialized:NoSchedule, which the core
// removes when it has linked the Node to its Machine and set the Machine's labels (Cluster API's
// contract for bootstrap providers): a kubelet may not change taints afterwards.
func KubeletUnitFile(o KubeletOptions) []byte {
	args := []string{
		"--config=" + kubeletConfigFile,
		"--kubeconfig=/var/lib/kubelet/kubeconfig-real",
		"--bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap",
		"--cert-dir=/var/lib/kubelet/pki",
		"--root-dir=/var/lib/kubelet",
		"--hostname-override=" + o.NodeName,
		"--provider-id=" + o.ProviderID,
		"--register-with-taints=" + taints(o.Spec.Taints),
	}
	if labels := labels(o.Spec.NodeLabels); labels != "" {
		args = append(args, "--node-labels="+labels)
	}
	for _, arg := range o.Spec.ExtraArgs {
		args = append(args, "--"+arg.Name+"="+arg.Value)
	}
	command := "/opt/bin/kubelet"
	for _, arg := range args {
		command += " " + quoteForSystemd(arg)
	}
	return fmt.Appendf(nil, `[Unit]
Description=Kubernetes kubelet
Wants=network-online.target
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=/bin/sh %[1]s prepare
ExecStart=%[2]s
ExecStopPost=/bin/sh %[1]s stopped
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
`, kubeletScript, command)
}

// taints renders the taints, each key and effect once: with two of them a kubelet does not start.
func taints(extra []bootstrapv1.Taint) string {
	key := func(t bootstrapv1.Taint) string { return t.Key + ":" + string(t.Effect) }
	uninitialized := bootstrapv1.Taint{Key: clusterv1.NodeUninitializedTaint.Key, Effect: clusterv1.NodeUninitializedTaint.Effect}
	known := map[string]bool{}
	var all []string
	for _, taint := range append([]bootstrapv1.Taint{uninitialized}, extra...) {
		if !known[key(taint)] {
			known[key(taint)] = true
			all = append(all, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
		}
	}
	return strings.Join(all, ",")
}

func labels(all map[string]bootstrapv1.LabelValue) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, key+"="+string(all[key]))
	}
	return strings.Join(out, ",")
}

// quoteForSystemd makes one word of a command line of a unit out of any text without control
// characters: see "Command lines" in systemd.service(5) and "Specifiers" in systemd.unit(5).
func quoteForSystemd(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$").Replace(word)
	plain := func(r rune) bool {
		return (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') ||
			strings.ContainsRune("-_./:=,@+%$", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
