package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Paths of the install manifests in the repository.
const (
	cloudConfigManifest = "out/bootstrap-cloudconfig/bootstrap-components.yaml"
	targetManifest      = "out/target/target-components.yaml"
)

// installTimeout bounds the waits of the installation.
const installTimeout = time.Minute

// install applies the install manifests without their Deployments, and prepares the managers.
func (s *Sandbox) install(ctx context.Context) error {
	if err := s.installTarget(ctx); err != nil {
		return err
	}
	var err error
	if s.webhooks, err = loopbackAddress(); err != nil {
		return err
	}
	names := []string{"core"}
	if s.Core, err = s.installManager(ctx, "core", s.options.coreVariant()); err != nil {
		return err
	}
	for _, c := range s.Clouds {
		if c.Manager, err = s.installManager(ctx, c.Name, c.manifest()); err != nil {
			return err
		}
		names = append(names, c.Name)
		if c.Name == "aws" {
			s.AWS = c.Manager
		}
	}
	if s.CloudConfig, err = s.installManager(ctx, "cloudconfig", cloudConfigManifest); err != nil {
		return err
	}
	if err := await(ctx, "all CRDs are established", installTimeout, s.crdsEstablished); err != nil {
		return err
	}
	if err := await(ctx, "aggregated ClusterRoles are filled", installTimeout, s.rolesAggregated); err != nil {
		return err
	}
	s.logf("installed CRDs, roles and ServiceAccounts of %s and cloudconfig (without their Deployments, which processes replace)",
		strings.Join(names, ", "))
	return nil
}

// installManager applies the install manifest of one manager, and prepares its process.
func (s *Sandbox) installManager(ctx context.Context, name, file string) (*Manager, error) {
	manifest, err := readManifest(s.paths.file(file))
	if err != nil {
		return nil, err
	}
	if file == coreManifest {
		if err := serveWebhooksOn(s.webhooks, manifest.objects); err != nil {
			return nil, err
		}
	}
	if err := create(ctx, s.Control.Client, manifest.objects); err != nil {
		return nil, errors.Wrapf(err, "installing %s", file)
	}
	return s.newManager(ctx, name, manifest.deployment)
}

func (s *Sandbox) installTarget(ctx context.Context) error {
	manifest, err := readManifest(s.paths.file(targetManifest))
	if err != nil {
		return err
	}
	return errors.Wrapf(create(ctx, s.Target.Client, manifest.objects), "installing %s", targetManifest)
}

func (s *Sandbox) crdsEstablished(ctx context.Context) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := s.Control.Client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		if !established(&list.Items[i]) {
			return fmt.Errorf("%s is not established", list.Items[i].Name)
		}
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// rolesAggregated waits for the controller manager: to a manager that starts before, the API server would refuse
// what its manifest grants.
func (s *Sandbox) rolesAggregated(ctx context.Context) error {
	list := &rbacv1.ClusterRoleList{}
	if err := s.Control.Client.List(ctx, list); err != nil {
		return err
	}
	for _, role := range list.Items {
		if role.AggregationRule != nil && len(role.Rules) == 0 {
			return fmt.Errorf("ClusterRole %s is empty", role.Name)
		}
	}
	return nil
}

func restConfig(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	return config, errors.Wrap(err, "reading a kubeconfig")
}
