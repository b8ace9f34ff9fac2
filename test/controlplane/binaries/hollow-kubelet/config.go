package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	"k8s.io/kubernetes/pkg/kubemark"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

// kubeletPort is the default port of a kubelet.
const kubeletPort = 10250

// loadConfig reads the kubelet's configuration file as the real kubelet does, by its own loader and validation.
func loadConfig(ctx context.Context, path string) (*kubeletconfig.KubeletConfiguration, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, absolute)
	if err != nil {
		return nil, err
	}
	config, err := loader.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	// That is about the host, which is not the machine.
	config.FailCgroupV1 = false
	if err := validation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("%s is refused: %w", path, err)
	}
	return config, nil
}

// adopt takes from the file what a kubelet without containers can do.
func adopt(hollow, file *kubeletconfig.KubeletConfiguration) {
	hollow.Authentication = file.Authentication
	hollow.Authorization = file.Authorization
	hollow.ReadOnlyPort = file.ReadOnlyPort
	hollow.RotateCertificates = file.RotateCertificates
	hollow.ServerTLSBootstrap = file.ServerTLSBootstrap
	hollow.TLSCertFile, hollow.TLSPrivateKeyFile = file.TLSCertFile, file.TLSPrivateKeyFile
	hollow.ClusterDNS, hollow.ClusterDomain = file.ClusterDNS, file.ClusterDomain
	hollow.Address, hollow.Port = file.Address, file.Port
	// Many simulated machines share one host: only one that was given a port of its own serves.
	hollow.EnableServer = file.Port != 0 && file.Port != kubeletPort
	if !hollow.EnableServer {
		hollow.ReadOnlyPort = 0
	}
}

// secure has the kubelet authenticate and authorize its callers, as the real one does.
func secure(ctx context.Context, hollow *kubemark.HollowKubelet, o *options, client kubernetes.Interface) error {
	auth, runReload, err := kubeletapp.BuildAuth(types.NodeName(o.nodeName), client, *hollow.KubeletConfiguration)
	if err != nil {
		return fmt.Errorf("building authentication and authorization: %w", err)
	}
	tls, err := kubeletapp.InitializeTLS(ctx, hollow.KubeletFlags, hollow.KubeletConfiguration)
	if err != nil {
		return fmt.Errorf("initializing TLS: %w", err)
	}
	runReload(ctx.Done())
	hollow.KubeletDeps.Auth, hollow.KubeletDeps.TLSOptions = auth, tls
	return nil
}
