package core

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
)

// OlderGroup is the group of the kinds that have the label of contract v1beta1 alone, as those of a provider that has not migrated
// yet. Those of standin.Group have both labels.
const OlderGroup = "v1beta1." + standin.Group

// The roles of the stand-ins are their kinds.
const (
	machineKind = "StandInMachine"
	configKind  = "StandInConfig"
	infraKind   = "StandInCluster"
	planeKind   = "StandInControlPlane"
)

// groupVersion returns that of the kinds which a core reads by a version of the contract.
func groupVersion(contract version.Contract) schema.GroupVersion {
	if contract == version.V1Beta1 {
		return schema.GroupVersion{Group: OlderGroup, Version: standin.VersionOf(contract).Version}
	}
	return standin.VersionOf(contract)
}

// CRDs returns the definitions of all kinds of the suite.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	both := standin.CRDs()
	all := both
	for _, definition := range both {
		all = append(all, older(definition))
	}
	return all
}

func older(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	served := groupVersion(version.V1Beta1).Version
	crd := definition.DeepCopy()
	crd.Name = crd.Spec.Names.Plural + "." + OlderGroup
	crd.Labels = map[string]string{version.Label(version.V1Beta1): served}
	crd.Spec.Group = OlderGroup
	crd.Spec.Versions = nil
	for _, v := range definition.Spec.Versions {
		if v.Name == served {
			v.Storage = true
			crd.Spec.Versions = append(crd.Spec.Versions, v)
		}
	}
	return crd
}

// Role returns what a core may do with the kinds; the roles of cores aggregate it.
func Role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "millwright-conformance-standins", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{standin.Group, OlderGroup}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		}},
	}
}

// installation returns the role and the kinds.
func installation() []client.Object {
	objects := []client.Object{Role()}
	for _, crd := range CRDs() {
		objects = append(objects, crd)
	}
	return objects
}

// install creates the kinds and the role where they do not exist; what it creates has the label of the run.
func install(ctx context.Context, env *Env) error {
	timeout := env.Timeouts.React.Duration
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, object := range installation() {
		env.own(object)
		if err := ensure(ctx, env, object); err != nil {
			return errors.Wrapf(err, "installing %s", object.GetName())
		}
	}
	for _, crd := range CRDs() {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return established(ctx, env.Client, crd.Name), nil
		})
		if err != nil {
			return errors.Wrapf(err, "the API server does not serve %s after %s", crd.Name, timeout)
		}
	}
	return nil
}

// ensure creates an object unless it exists. One that another run has created is marked as used by this one, so that the other does not
// remove it. One that is being deleted, as by the previous run, is waited for and created again.
func ensure(ctx context.Context, env *Env, object client.Object) error {
	for {
		err := env.Client.Create(ctx, object)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		current, _ := object.DeepCopyObject().(client.Object)
		err = env.Client.Get(ctx, client.ObjectKeyFromObject(object), current)
		if err == nil && current.GetDeletionTimestamp() == nil && current.GetLabels()[behaviour.LabelRun] != "" {
			mark := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, current.GetUID(), behaviour.LabelRun, env.Run)
			err = env.Client.Patch(ctx, current, client.RawPatch(types.MergePatchType, []byte(mark)))
		}
		if err == nil && current.GetDeletionTimestamp() == nil {
			return nil
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "it is being deleted since an earlier run: find out which objects block that, remove them, run again")
		case <-time.After(env.Timeouts.Poll.Duration):
		}
	}
}

func established(ctx context.Context, c client.Client, name string) bool {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return false
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}
