package machine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/drain"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedrainrules,verbs=get;list;watch

// drainRules compiles the MachineDrainRules of the namespace for the Machine. Invalid ones are reported on
// themselves, once for each version of them.
func (r *Reconciler) drainRules(ctx context.Context, s *scope) (*drain.Rules, []drain.InvalidRule, error) {
	list := &clusterv1.MachineDrainRuleList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, errors.Wrapf(err, "reading the MachineDrainRules of namespace %s", s.Object.Namespace)
	}
	var ofCluster map[string]string
	if s.cluster != nil {
		ofCluster = s.cluster.Labels
	}
	r.reportedRules.keep(s.Object.Namespace, list.Items)
	rules, invalid := drain.CompileRules(list.Items, s.Object.Labels, ofCluster)
	for i := range invalid {
		rule := invalid[i].Rule
		if r.reportedRules.first(rule.Namespace, rule.UID, rule.ResourceVersion) {
			r.Recorder.Eventf(rule.DeepCopy(), s.Original, corev1.EventTypeWarning, InvalidDrainRuleEvent, "Drain", "%s", invalid[i].String())
		}
	}
	return rules, invalid, nil
}

// describeInvalid describes invalid rules for the end of a message.
func describeInvalid(invalid []drain.InvalidRule) string {
	var text strings.Builder
	for i := range invalid {
		text.WriteString("; " + invalid[i].String())
	}
	return text.String()
}

// reportedOnce remembers by namespace what has been reported about which version of an object.
type reportedOnce struct {
	mutex    sync.Mutex
	versions map[string]map[types.UID]string
}

// keep forgets all objects of a namespace but those that are there.
func (t *reportedOnce) keep(namespace string, there []clusterv1.MachineDrainRule) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	maps.DeleteFunc(t.versions[namespace], func(uid types.UID, _ string) bool {
		return !slices.ContainsFunc(there, func(rule clusterv1.MachineDrainRule) bool { return rule.UID == uid })
	})
	if len(t.versions[namespace]) == 0 {
		delete(t.versions, namespace)
	}
}

// first reports whether something is to be reported about a version for the first time.
func (t *reportedOnce) first(namespace string, uid types.UID, version string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.versions[namespace][uid] == version {
		return false
	}
	if t.versions == nil {
		t.versions = map[string]map[types.UID]string{}
	}
	if t.versions[namespace] == nil {
		t.versions[namespace] = map[types.UID]string{}
	}
	t.versions[namespace][uid] = version
	return true
}
