package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	kubeletcertificate "k8s.io/kubernetes/pkg/kubelet/certificate"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"
)

// withoutCertificate is how long the real kubelet stays up without a client certificate while the API server answers. Its unit
// starts it again, and it requests one with another key.
const withoutCertificate = 5 * time.Minute

// connect returns how the kubelet reaches the API server, once it has a client certificate. It joins as the real kubelet does, which
// is another way when it rotates its certificate: then each attempt has a key and a request of its own.
func connect(ctx context.Context, o *options, rotate bool) (*restclient.Config, error) {
	if o.bootstrapKubeconfig == "" || !rotate {
		if o.bootstrapKubeconfig != "" {
			if err := bootstrap.LoadClientCert(ctx, o.kubeconfig, o.bootstrapKubeconfig, o.certDir, types.NodeName(o.nodeName)); err != nil {
				return nil, fmt.Errorf("bootstrapping the client certificate: %w", err)
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", o.kubeconfig, err)
		}
		return config, nil
	}
	asking, joined, err := bootstrap.LoadClientConfig(klog.FromContext(ctx), o.kubeconfig, o.bootstrapKubeconfig, o.certDir)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", o.bootstrapKubeconfig, err)
	}
	manager, err := kubeletcertificate.NewKubeletClientCertificateManager(o.certDir, types.NodeName(o.nodeName),
		joined.CertData, joined.KeyData, joined.CertFile, joined.KeyFile,
		func(current *tls.Certificate) (kubernetes.Interface, error) {
			if current != nil {
				return kubernetes.NewForConfig(joined)
			}
			return kubernetes.NewForConfig(asking)
		})
	if err != nil {
		return nil, fmt.Errorf("setting up the client certificate: %w", err)
	}
	rotating := restclient.AnonymousClientConfig(joined)
	if _, err := kubeletcertificate.UpdateTransport(klog.FromContext(ctx), ctx.Done(), rotating, manager, withoutCertificate); err != nil {
		return nil, fmt.Errorf("setting up the connection: %w", err)
	}
	manager.Start()
	// The real kubelet continues without one and tries to register until it has one.
	err = wait.PollUntilContextCancel(
		ctx,
		100*time.Millisecond,
		true,
		func(context.Context) (bool, error) { return manager.Current() != nil, nil },
	)
	return rotating, err
}
