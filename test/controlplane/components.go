package controlplane

import (
	"net"
	"path/filepath"
	"strconv"

	"millwright.dev/test/childprocess"
)

// serviceCIDR is what ClusterIPs would come from; serviceIP is the API server's own in it.
const serviceCIDR = "10.96.0.0/16"

var serviceIP = net.IPv4(10, 96, 0, 1)

// etcdURL is a Unix socket in the working directory, which its host and port name: no port is taken, the
// directory's name may be long, and no other program can reach it.
const etcdURL = "unix://client:2379"

// auditPolicy records who changes what, and what our managers read, not how: no content, so no secrets. The managers are the
// ServiceAccounts that are not Kubernetes' own, and the one that they have in target clusters.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  users: ["system:serviceaccount:kube-system:millwright-target"]
  verbs: [get, list, watch]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
  verbs: [get, list, watch]
- level: None
`

// spec adds what all components have in common.
func (c *ControlPlane) spec(name string, args []string) childprocess.Spec {
	return childprocess.Spec{
		Name: name,
		Path: filepath.Join(c.assets, name),
		Args: args,
		Dir:  c.dir,
		Log:  filepath.Join(c.options.LogDir, name+".log"),
	}
}

func (c *ControlPlane) etcd() childprocess.Spec {
	return c.spec("etcd", []string{
		"--name=etcd",
		"--data-dir=etcd",
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=unix://peer:2380",
		"--initial-advertise-peer-urls=unix://peer:2380",
		"--initial-cluster=etcd=unix://peer:2380",
		// The data need not survive the machine, so waiting for the disk is wasted.
		"--unsafe-no-fsync",
		"--log-level=warn",
	})
}

func (c *ControlPlane) apiServer(port int) childprocess.Spec {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=pki/apiserver.crt",
		"--tls-private-key-file=pki/apiserver.key",
		"--client-ca-file=pki/ca.crt",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=pki/sa.pub",
		"--service-account-signing-key-file=pki/sa.key",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged",
		"--profiling=false",
		// Endpoints cannot hold a loopback address, and no pod here reaches the Service anyway.
		"--endpoint-reconciler-type=none",
		"--v=1",
	}
	if c.options.Audit {
		args = append(args, "--audit-policy-file=pki/audit-policy.yaml", "--audit-log-path="+c.AuditLog())
	}
	return c.spec("kube-apiserver", append(args, c.options.APIServerArgs...))
}

func (c *ControlPlane) controllerManager() childprocess.Spec {
	return c.spec("kube-controller-manager", append([]string{
		"--kubeconfig=pki/kube-controller-manager.kubeconfig",
		// Serves nothing: no port to collide on. What it does shows in the cluster.
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials",
		"--service-account-private-key-file=pki/sa.key",
		"--root-ca-file=pki/ca.crt",
		"--cluster-signing-cert-file=pki/ca.crt",
		"--cluster-signing-key-file=pki/ca.key",
		"--allocate-node-cidrs=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--v=1",
	}, c.options.ControllerManagerArgs...))
}

func (c *ControlPlane) scheduler() childprocess.Spec {
	return c.spec("kube-scheduler", []string{
		"--kubeconfig=pki/kube-scheduler.kubeconfig",
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--v=1",
	})
}
