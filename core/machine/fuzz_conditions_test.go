package machine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/test/fuzzinput"
)

// FuzzConditions: whatever was read about a Machine, the conditions are such as the API accepts, agree with each other,
// say what is awaited, and are the same the second time.
func FuzzConditions(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}} {
		f.Add(seed, "reported")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		c := fuzzinput.From(data)
		text = strings.ToValidUTF8(text, "")
		if c.Below(4) == 1 {
			text = strings.Repeat("ä"+text, 20000)
		}
		s := aScope(c, text)
		s.setStatus()
		for _, condition := range s.Object.Status.Conditions {
			if slices.Contains(ownConditions, condition.Type) {
				checkCondition(t, condition)
			}
		}
		checkAgreement(t, s)
		before := s.Object.Status.DeepCopy()
		s.setStatus()
		if !equality.Semantic.DeepEqual(before, &s.Object.Status) {
			t.Errorf("The second time is another:\n%s", diff.Diff(before, &s.Object.Status))
		}
	})
}

// checkCondition checks what the API demands of a condition, and that what is not good is explained.
func checkCondition(t *testing.T, c metav1.Condition) {
	t.Helper()
	if c.Reason == "" || external.ReasonOr(c.Reason, "") != c.Reason {
		t.Errorf("%s has the reason %q", c.Type, c.Reason)
	}
	if len([]rune(c.Message)) > 32768 {
		t.Errorf("%s has a message of %d characters", c.Type, len([]rune(c.Message)))
	}
	if c.LastTransitionTime.IsZero() {
		t.Errorf("%s has no transition time", c.Type)
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		t.Errorf("%s is %q", c.Type, c.Status)
	}
}

// checkAgreement checks what holds between the conditions of one Machine.
func checkAgreement(t *testing.T, s *scope) {
	t.Helper()
	all := s.Object.Status.Conditions
	is := func(conditionType string) metav1.ConditionStatus {
		if found := meta.FindStatusCondition(all, conditionType); found != nil {
			return found.Status
		}
		return ""
	}
	if s.paused() {
		if is(clusterv1.PausedCondition) != metav1.ConditionTrue {
			t.Error("Paused, and does not say so")
		}
		return
	}
	if s.cluster == nil && !s.Deleting() {
		if is(clusterv1.MachineReadyCondition) != metav1.ConditionUnknown {
			t.Error("Ready without a Cluster")
		}
		return
	}
	if (is(clusterv1.MachineDeletingCondition) == metav1.ConditionTrue) != s.Deleting() {
		t.Errorf("Deleting is %s", is(clusterv1.MachineDeletingCondition))
	}
	ready := is(clusterv1.MachineReadyCondition) == metav1.ConditionTrue
	for _, part := range []string{clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition,
		clusterv1.MachineNodeHealthyCondition} {
		if ready && is(part) != metav1.ConditionTrue {
			t.Errorf("Ready while %s is %s", part, is(part))
		}
	}
	if ready && (s.Deleting() || is(clusterv1.MachineHealthCheckSucceededCondition) == metav1.ConditionFalse) {
		t.Error("Ready while being deleted or unhealthy")
	}
	if is(clusterv1.MachineAvailableCondition) == metav1.ConditionTrue && !ready {
		t.Error("Available and not Ready")
	}
	if found := meta.FindStatusCondition(all, clusterv1.MachineReadyCondition); !ready && found.Message == "" {
		t.Error("Not Ready without a word")
	}
}

// aScope makes a scope as the steps may leave it. Text is whatever others wrote.
func aScope(c *fuzzinput.Choices, text string) *scope {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Generation: 3, Finalizers: []string{clusterv1.MachineFinalizer}},
	}
	m.Spec.ClusterName = "c"
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Infra", Name: "m"}
	if c.Yes() {
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Config", Name: "m"}
	}
	m.Spec.ProviderID = fuzzinput.Of(c, "", "id")
	m.Spec.MinReadySeconds = ptr.To(fuzzinput.Of(c, int32(0), 10, 1<<30))
	m.Status.NodeRef.Name = fuzzinput.Of(c, "", "n")
	m.Status.Initialization.BootstrapDataSecretCreated = fuzzinput.Of(c, nil, ptr.To(true), ptr.To(false))
	m.Status.Initialization.InfrastructureProvisioned = fuzzinput.Of(c, nil, ptr.To(true), ptr.To(false))
	if c.Yes() {
		m.Annotations = map[string]string{fuzzinput.Of(c, clusterv1.PausedAnnotation, clusterv1.UpdateInProgressAnnotation): text}
	}
	if c.Yes() {
		m.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	}
	for range c.Below(3) {
		gate := fuzzinput.Of(c, "example.com/gate", clusterv1.MachineNodeReadyCondition)
		m.Spec.ReadinessGates = append(
			m.Spec.ReadinessGates,
			clusterv1.MachineReadinessGate{ConditionType: gate, Polarity: fuzzinput.Of(c, "", clusterv1.NegativePolarityCondition)},
		)
	}
	for _, conditionType := range append([]string{clusterv1.MachineHealthCheckSucceededCondition, "example.com/gate"}, ownConditions...) {
		if c.Yes() {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
				Type:               conditionType,
				Status:             status(c),
				Reason:             fuzzinput.Of(c, "Some", clusterv1.ObjectDoesNotExistReason),
				Message:            conditions.Message(text),
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(c.Below(60)) * time.Second)),
			})
		}
	}
	s := &scope{
		Base: base{Now: noon, Original: m, Object: m.DeepCopy()}, options: Options{RemoteConditionsGracePeriod: time.Minute},
		bootstrap: reference{ref: m.Spec.Bootstrap.ConfigRef}, infrastructure: reference{ref: m.Spec.InfrastructureRef},
	}
	if c.Yes() {
		s.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(c.Yes())}}
	}
	behind(c, &s.infrastructure, text)
	if s.bootstrap.ref.IsDefined() {
		behind(c, &s.bootstrap, text)
	}
	nodeSide(c, s, text)
	if s.Deleting() {
		s.progress = deletion{fuzzinput.Of(c, "", clusterv1.MachineDeletingDrainingNodeReason), text}
	}
	if c.Yes() {
		s.machineSet, s.machineDeployment = &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
		s.machineDeployment.Spec.Template.Spec.FailureDomain = fuzzinput.Of(c, "", text)
	}
	return s
}

func status(c *fuzzinput.Choices) metav1.ConditionStatus {
	return fuzzinput.Of(c, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown)
}

// behind fills in what was found behind a reference.
func behind(c *fuzzinput.Choices, r *reference, text string) {
	kind := schema.GroupKind{Group: "example.com", Kind: r.ref.Kind}
	r.err = fuzzinput.Of[error](
		c,
		nil,
		nil,
		nil,
		&version.NoCRDError{
			GroupKind: kind,
		},
		&version.NoContractError{GroupKind: kind},
		&external.NotSyncedError{Overdue: true},
		&external.OwnedElsewhereError{},
		apierrors.NewNotFound(schema.GroupResource{Resource: "infras"}, "m"),
		errors.New(text),
	)
	if r.err != nil {
		return
	}
	if r.beingCreated = c.Below(4) == 1; r.beingCreated {
		return
	}
	state := map[string]any{
		"initialization": map[string]any{"provisioned": fuzzinput.Of[any](c, true, false, text), "dataSecretCreated": c.Yes()},
		"ready":          c.Yes(),
	}
	if c.Yes() {
		condition := map[string]any{
			"type":    "Ready",
			"status":  fuzzinput.Of(c, "True", "False", "Unknown", text),
			"message": text,
			"reason":  fuzzinput.Of(c, "Good", text, ""),
		}
		state["conditions"] = []any{condition}
	}
	if c.Yes() {
		state["failureMessage"], state["failureReason"] = text, fuzzinput.Of(c, text, "")
	}
	r.object = external.Object{
		Contract: fuzzinput.Of(c, version.V1Beta1, version.V1Beta2),
		Unstructured: &unstructured.Unstructured{
			Object: map[string]any{"kind": r.ref.Kind, "metadata": map[string]any{"name": "m"}, "status": state},
		},
	}
}

// nodeSide fills in what was found in the target cluster.
func nodeSide(c *fuzzinput.Choices, s *scope, text string) {
	switch c.Below(4) {
	case 0:
		s.disconnection = &shared.NotConnectedError{
			Reason: fuzzinput.Of(
				c,
				shared.NotDialledYet,
				shared.KubeconfigMissing,
			),
			Message:     text,
			LastSuccess: noon.Add(-time.Duration(c.Below(200)) * time.Second),
		}
	case 1:
		s.nodeErr = fuzzinput.Of[error](
			c,
			&SeveralNodesError{ProviderID: text, Nodes: []string{"a", text}},
			&OtherMachineError{ProviderID: text, Equal: c.Yes()},
		)
	case 2:
		s.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		s.sync = fuzzinput.Of(
			c,
			nodeSync{once: true},
			nodeSync{awaited: "Infra m"},
			nodeSync{err: errors.New(text)},
			nodeSync{once: true, err: &NotKeptError{Lost: []string{text}}},
		)
		for _, conditionType := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
			corev1.NodePIDPressure} {
			if c.Yes() {
				s.node.Status.Conditions = append(s.node.Status.Conditions, corev1.NodeCondition{
					Type: conditionType, Status: fuzzinput.Of(c, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown), Message: text,
				})
			}
		}
	}
}
