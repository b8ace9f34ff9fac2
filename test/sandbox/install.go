package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Paths of the install manifests in the repository.
const (
	awsManifest         = "out/infrastructure-aws/infrastructure-components.yaml"
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
	for _, m := range []struct {
		field      **Manager
		name, file string
	}{
		{&s.Core, "core", s.options.coreVariant()},
		{&s.AWS, "aws", awsManifest},
		{&s.CloudConfig, "cloudconfig", cloudConfigManifest},
	} {
		manifest, err := readManifest(s.paths.file(m.file))
		if err != nil {
			return err
		}
		if m.file == coreManifest {
			if err := serveWebhooksOn(s.webhooks, manifest.objects); err != nil {
				return err
			}
		}
		if err := create(ctx, s.Control.Client, manifest.objects); err != nil {
			return errors.Wrapf(err, "installing %s", m.file)
		}
		if *m.field, err = s.newManager(ctx, m.name, manifest.deployment); err != nil {
			return err
		}
	}
	if err := await(ctx, "all CRDs are established", installTimeout, s.crdsEstablished); err != nil {
		return err
	}
	if err := await(ctx, "aggregated ClusterRoles are filled", installTimeout, s.rolesAggregated); err != nil {
		return err
	}
	s.say(
		"installed CRDs, roles and ServiceAccounts of core, aws and cloudconfig (their Deployments are left out: processes take their place)",
	)
	return nil
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

// rolesAggregated waits for the controller manager: a manager that starts before would be refused
// what its manifest gives it.
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
