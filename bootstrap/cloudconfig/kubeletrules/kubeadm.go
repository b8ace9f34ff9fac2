package kubeletrules

// KubeadmDifferences are the fields in which the configuration that the controller renders differs from kubeadm's, with the reasons.
var KubeadmDifferences = map[string]string{
	"authentication.x509.clientCAFile": "the downloader keeps the cluster's authority beside the configuration, in `/var/lib/kubelet/ca.crt`",
	"healthzBindAddress":               "kubeadm writes the kubelet's default, `127.0.0.1`",
	"healthzPort":                      "kubeadm writes the kubelet's default, 10248",
	"resolvConf":                       "kubeadm chooses when the Node joins, here the machine does at each start of the kubelet",
	"serverTLSBootstrap":               "kubelets of kubeadm sign their own serving certificates, here the cluster's authority signs them",
}
