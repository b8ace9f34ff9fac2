// Command kubeadm-config prints the KubeletConfiguration that kubeadm of this version writes for a Node. A test compares it with what
// the CloudConfig provider renders.
package main

import (
	"fmt"
	"os"

	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/componentconfigs"
)

func main() {
	config := &kubeadmapi.ClusterConfiguration{
		CertificatesDir: "/etc/kubernetes/pki",
		Networking:      kubeadmapi.Networking{ServiceSubnet: "10.96.0.0/12", DNSDomain: "cluster.local"},
	}
	componentconfigs.Default(config, &kubeadmapi.APIEndpoint{}, &kubeadmapi.NodeRegistrationOptions{})
	out, err := config.ComponentConfigs[componentconfigs.KubeletGroup].Marshal()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(string(out))
}
