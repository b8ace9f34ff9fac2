package node

// Paths on the machine. The scripts in this directory name the same ones.
const (
	downloaderDirectory = "/var/lib/cloud-config-downloader"
	downloaderScript    = downloaderDirectory + "/download-cloud-config.sh"
	credentialDirectory = downloaderDirectory + "/credentials"
	unitDirectory       = "/etc/systemd/system"
	// kubeletConfigFile is beside ca.crt, which it refers to.
	kubeletConfigFile = "/var/lib/kubelet/config.yaml"
	// kubeletResolvConf is a link that kubelet.sh makes, to the file that names real servers on this machine.
	kubeletResolvConf = "/var/lib/kubelet/resolv.conf"
	// staticPods is kubeadm's directory of static Pods.
	staticPods = "/etc/kubernetes/manifests"
	// kubeletScript is kubelet.sh.
	kubeletScript = downloaderDirectory + "/kubelet.sh"
	// kubeadmDropIn is where kubeadm's packages and images have a drop-in that replaces the command of the kubelet's unit.
	kubeadmDropIn = "10-kubeadm.conf"

	// DownloaderUnit is the unit that keeps the downloader running.
	DownloaderUnit = "cloud-config-downloader.service"
	// KubeletUnit is the unit of the kubelet.
	KubeletUnit = "kubelet.service"
)

// Keys of a node's Secret in the target cluster. The downloader reads them by the same names.
const (
	// PayloadKey holds the bundle: a tar archive, compressed by gzip.
	PayloadKey = "payload"
	// RevisionKey holds the SHA-256 of the uncompressed archive in hexadecimal digits.
	RevisionKey = "revision"
	// JoinTokenKey holds the bootstrap token for the kubelet; it is absent after the join.
	JoinTokenKey = "bootstrap-token"
	// ServerKey holds the URL of the target cluster's API server.
	ServerKey = "server"
	// AuthorityKey holds the certificate authority of the target cluster's API server, in PEM.
	AuthorityKey = "ca.crt"
	// PollIntervalKey holds the seconds between two polls after the join, in decimal digits.
	PollIntervalKey = "poll-interval"
	// NodeNameKey holds the name of the Node; it is for people, the kubelet's unit names it too.
	NodeNameKey = "node-name"
	// ProviderIDKey holds the provider ID of the machine; it is for people too.
	ProviderIDKey = "provider-id"
)
